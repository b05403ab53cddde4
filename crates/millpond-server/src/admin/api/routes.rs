//! From a method and path to an operation, by the OpenAPI document.

use super::DOCUMENT;
use http::Method;
use percent_encoding::percent_decode_str;
use std::sync::LazyLock;

/// The last component of a path that stands for all further ones. Its value stays percent-encoded.
const REST: &str = "{rest}";

/// The routes of the API.
pub(super) static ROUTES: LazyLock<Routes> = LazyLock::new(Routes::of_document);

/// An operation, and the values of its path's parameters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundRoute {
    /// Name of the operation.
    pub(super) operation: &'static str,
    /// Values, in the order of the path; decoded, but for a [rest](REST).
    pub(super) parameters: Vec<String>,
}

/// Why a request has no operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoRoute {
    /// No such path.
    Path,
    /// A component of the path can't be decoded.
    Component,
    /// The path has other methods.
    Method(String),
}

/// All routes.
pub(super) struct Routes(Vec<Route>);

struct Route {
    method: Method,
    path: &'static str,
    operation: &'static str,
}

impl Routes {
    fn of_document() -> Self {
        let mut routes = Vec::new();
        for (path, item) in &DOCUMENT.paths.paths {
            let operations = [
                (Method::GET, &item.get),
                (Method::PUT, &item.put),
                (Method::POST, &item.post),
                (Method::PATCH, &item.patch),
                (Method::DELETE, &item.delete),
            ];
            for (method, operation) in operations {
                if let Some(operation) = operation.as_ref().and_then(|operation| operation.operation_id.as_deref()) {
                    routes.push(Route { method, path, operation });
                }
            }
        }
        Self(routes)
    }

    /// Finds the operation of a request. HEAD is GET without the body.
    pub(super) fn find(&self, method: &Method, path: &str) -> Result<FoundRoute, NoRoute> {
        let wanted = if *method == Method::HEAD { &Method::GET } else { method };
        let fitting: Vec<_> = self.0.iter().filter_map(|route| Some((route, route.values(path)?))).collect();
        let Some((route, values)) = fitting.iter().find(|(route, _)| route.method == *wanted) else {
            let mut allowed: Vec<&str> = fitting.iter().map(|(route, _)| route.method.as_str()).collect();
            if allowed.is_empty() {
                return Err(NoRoute::Path);
            }
            if allowed.contains(&"GET") {
                allowed.push("HEAD");
            }
            return Err(NoRoute::Method(allowed.join(", ")));
        };
        let decode = |value: &&str| percent_decode_str(value).decode_utf8().map(|value| value.into_owned());
        let mut parameters: Vec<_> =
            values.iter().map(decode).collect::<Result<_, _>>().map_err(|_| NoRoute::Component)?;
        if let (Some(last), Some(rest)) = (parameters.last_mut(), values.last().filter(|_| route.path.ends_with(REST)))
        {
            *last = (*rest).to_owned();
        }
        Ok(FoundRoute { operation: route.operation, parameters })
    }

    /// Names of all operations.
    #[cfg(test)]
    pub(super) fn operations(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|route| route.operation)
    }
}

impl Route {
    /// The components of a path that stand for parameters; `None` where it is another path.
    fn values<'a>(&self, path: &'a str) -> Option<Vec<&'a str>> {
        let (mut template, mut found, mut at) = (self.path.split('/'), path.split('/'), 0);
        let mut values = Vec::new();
        loop {
            let (part, component) = (template.next(), found.next());
            let begin = at;
            at += component.map_or(0, |component| component.len() + 1);
            match (part, component) {
                (None, None) => return Some(values),
                (Some(REST), Some(component)) if !component.is_empty() => {
                    values.push(&path[begin..]);
                    return Some(values);
                }
                (Some(part), Some(component)) if part.starts_with('{') && !component.is_empty() => {
                    values.push(component)
                }
                (Some(part), Some(component)) if part == component => {}
                _ => return None,
            }
        }
    }
}
