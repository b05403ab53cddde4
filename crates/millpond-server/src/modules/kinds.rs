//! The kinds of modules that operators can attach.

use super::ModuleLine;
use millpond_settings::nearest;
use millpond_stream::{AttachableKind, BadOption, ModuleDeclaration};
use std::sync::Arc;

/// Why a line is none of the known kinds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadModuleLine {
    /// No kind has the name.
    #[error("no kind of modules is called {name:?}{hint} (kinds: {known})", hint = hint(.nearest.as_deref()))]
    Kind { name: String, nearest: Option<String>, known: String },
    /// An option can't be taken.
    #[error(transparent)]
    Option(#[from] BadOption),
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!(", did you mean {nearest:?}?")).unwrap_or_default()
}

/// All kinds, each with another name.
#[derive(Clone)]
pub(crate) struct KindSet(Arc<[Arc<dyn AttachableKind>]>);

impl KindSet {
    /// Makes a set. Of kinds with one name, the first counts.
    pub(crate) fn new(kinds: impl IntoIterator<Item = Arc<dyn AttachableKind>>) -> Self {
        let mut all: Vec<Arc<dyn AttachableKind>> = Vec::new();
        for kind in kinds {
            let name = kind.declaration().kind.name;
            if all.iter().any(|known| known.declaration().kind.name == name) {
                tracing::error!(name, "a kind of modules is left out: another one has its name");
            } else {
                all.push(kind);
            }
        }
        Self(all.into())
    }

    /// Returns the kind of a line, whose options it can take.
    ///
    /// # Errors
    /// There is no such kind, or it can't take an option.
    pub(crate) fn of(&self, line: &ModuleLine) -> Result<&Arc<dyn AttachableKind>, BadModuleLine> {
        check(line, self.declarations())?;
        let kind = self.0.iter().find(|kind| kind.declaration().kind.name == line.kind);
        let kind = kind.ok_or_else(|| unknown(line, self.declarations()))?;
        kind.check(&line.options)?;
        Ok(kind)
    }

    /// Returns the declarations of the kinds: names, descriptions and options.
    pub(crate) fn declarations(&self) -> impl Iterator<Item = &'static ModuleDeclaration> + Clone {
        self.0.iter().map(|kind| kind.declaration())
    }
}

/// Checks a line against declared kinds.
///
/// # Errors
/// There is no such kind, or it can't take an option.
pub(crate) fn check<'a>(
    line: &ModuleLine,
    declarations: impl Iterator<Item = &'a ModuleDeclaration> + Clone,
) -> Result<(), BadModuleLine> {
    match declarations.clone().find(|declaration| declaration.kind.name == line.kind) {
        Some(declaration) => Ok(line.options.check(declaration)?),
        None => Err(unknown(line, declarations)),
    }
}

fn unknown<'a>(line: &ModuleLine, declarations: impl Iterator<Item = &'a ModuleDeclaration> + Clone) -> BadModuleLine {
    let names = declarations.map(|declaration| declaration.kind.name);
    let nearest = nearest(&line.kind, names.clone());
    BadModuleLine::Kind { name: line.kind.clone(), nearest, known: names.collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::BoxFuture;
    use millpond_stream::{MadeModule, ModuleInput, ModuleKind, ModuleOptions, Program, graph::ModuleError};

    static DECLARATION: ModuleDeclaration = ModuleDeclaration {
        kind: ModuleKind { name: "limited", about: "refuses all options", inputs: 1, outputs: 0 },
        input: ModuleInput::Any,
        options: &[],
        is_kept: false,
    };

    struct Limited;

    impl AttachableKind for Limited {
        fn declaration(&self) -> &'static ModuleDeclaration {
            &DECLARATION
        }

        fn check(&self, _: &ModuleOptions) -> Result<(), BadOption> {
            Err(BadOption::Limit { name: "size", found: "2GiB".into(), most: "1GiB".into(), setting: "record-size" })
        }

        fn make<'a>(
            &'a self,
            _: &'a Program,
            _: &'a ModuleOptions,
            _: u64,
        ) -> BoxFuture<'a, Result<MadeModule, ModuleError>> {
            Box::pin(async { Err("it is not made".into()) })
        }
    }

    #[test]
    fn a_kind_checks_options_before_a_module_is_made() {
        let kinds = KindSet::new([Arc::new(Limited) as Arc<dyn AttachableKind>]);
        let error = kinds.of(&ModuleLine::parse("cams/door limited").unwrap()).err().unwrap();
        assert!(error.to_string().starts_with("size: found 2GiB, expected at most 1GiB"), "{error}");
    }
}
