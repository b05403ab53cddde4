//! Collects the encryption of a track while samples arrive, from `senc`, or `saiz` and `saio`, of a movie box or of
//! fragments.

use super::{
    FragmentHeader, KeyParameters, Protection,
    auxiliary::Form,
    group::{self, OF_FRAGMENT},
    source::AuxiliaryEntries,
};
use crate::{boxes::Node, budget::Budget, error::MediaError};
use std::collections::HashMap;

/// Boxes that describe the same samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Container<'n, 'a> {
    /// The `stbl` or `traf`.
    pub(crate) tables: &'n Node<'a>,
    /// The `trak` or `traf`, which may also contain `senc`.
    pub(crate) track: &'n Node<'a>,
    /// The outermost box that is wholly in memory: `moov` or `moof`.
    pub(crate) whole: &'n Node<'a>,
    /// Offset in the object from which `saio` counts.
    pub(crate) base: u64,
}

/// A [`Protection`] that is being built.
#[derive(Debug)]
pub(crate) struct ProtectionDraft {
    protection: Protection,
    numbers: HashMap<KeyParameters, u16>,
    /// Numbers of the groups that the movie box describes.
    of_movie: Vec<u16>,
}

impl ProtectionDraft {
    /// Starts with the encryption of a sample entry, and the groups that `stbl` describes.
    pub(crate) fn new(protection: Protection, stbl: &Node<'_>, budget: &mut Budget) -> Result<Self, MediaError> {
        let mut draft = Self { protection, numbers: HashMap::new(), of_movie: Vec::new() };
        for parameters in group::descriptions(stbl, budget)? {
            let number = draft.number(stbl, parameters)?;
            draft.of_movie.push(number);
        }
        Ok(draft)
    }

    pub(crate) fn finish(mut self) -> Protection {
        self.protection.samples.shrink();
        self.protection
    }

    /// Reads the encryption of `count` samples, from sample `first` on, out of the boxes `at`.
    pub(crate) fn add(
        &mut self,
        at: Container<'_, '_>,
        first: u32,
        count: u32,
        budget: &mut Budget,
    ) -> Result<(), MediaError> {
        self.protection.samples.resume(first);
        let mut source = AuxiliaryEntries::of(at, count)?;
        let (mut left, mut of_fragment) = (count, None);
        // Samples after the last run are in no group.
        for (samples, number) in group::runs(at.tables, budget)?.chain([(count, 0)]) {
            let samples = samples.min(left);
            if samples > 0 {
                let group = self.group(number, at.tables, &mut of_fragment, budget)?;
                self.add_run(at.tables, group, samples, source.as_mut(), budget)?;
            }
            left -= samples;
        }
        Ok(())
    }

    /// Reads the entries of `count` samples of one group.
    fn add_run(
        &mut self,
        tables: &Node<'_>,
        group: u16,
        count: u32,
        source: Option<&mut AuxiliaryEntries<'_>>,
        budget: &mut Budget,
    ) -> Result<(), MediaError> {
        let parameters = self.parameters(group);
        let (form, is_protected) =
            (Form { group, iv_size: parameters.iv_size, subsamples: false }, parameters.is_protected);
        let Some(source) = source.filter(|source| !source.says_nothing(form.iv_size)) else {
            if is_protected && form.iv_size > 0 {
                let found = format!("no senc, and no saiz with saio, of {count} encrypted samples");
                return Err(tables.invalid(found, "initialization vectors"));
            }
            self.protection.samples.push_alike(form, count);
            return Ok(());
        };
        for _ in 0..count {
            let (entry, subsamples) = source.next(form.iv_size, is_protected, budget)?;
            match is_protected {
                true => self.protection.samples.push(Form { subsamples, ..form }, entry),
                false => self.protection.samples.push_alike(form, 1),
            }
        }
        Ok(())
    }

    /// Adds `count` samples, from sample `first` on, whose sample entry is of the format without encryption.
    pub(crate) fn add_clear(&mut self, node: &Node<'_>, first: u32, count: u32) -> Result<(), MediaError> {
        let group = self.number(node, KeyParameters::CLEAR)?;
        self.protection.samples.resume(first);
        self.protection.samples.push_alike(Form { group, ..Form::default() }, count);
        Ok(())
    }

    /// Records the headers of the fragment that begins with sample `first`.
    pub(crate) fn add_headers(&mut self, first: u32, headers: &[u32]) {
        let known = &mut self.protection.headers;
        let begins = known.last().map_or(0, |last| known.partition_point(|header| header.sample < last.sample));
        let last = known.get(begins..).unwrap_or_default().iter().map(|known| &known.header);
        if !last.eq(headers) {
            known.extend(headers.iter().map(|&header| FragmentHeader { sample: first, header }));
        }
    }

    fn parameters(&self, group: u16) -> &KeyParameters {
        let number = usize::from(group).checked_sub(1);
        number.and_then(|number| self.protection.groups.get(number)).unwrap_or(&self.protection.parameters)
    }

    /// Returns the number of a group with these parameters.
    fn number(&mut self, node: &Node<'_>, parameters: KeyParameters) -> Result<u16, MediaError> {
        if let Some(&number) = self.numbers.get(&parameters) {
            return Ok(number);
        }
        let groups = &mut self.protection.groups;
        let number = u16::try_from(groups.len() + 1).map_err(|_| {
            let (found, most) = (groups.len() as u64 + 1, u64::from(u16::MAX));
            MediaError::too_large(node.path.clone(), node.offset, found, most, "unlike groups of encrypted samples")
        })?;
        groups.push(parameters.clone());
        self.numbers.insert(parameters, number);
        Ok(number)
    }

    /// Returns the group with the index `number` in `sbgp` of `tables`. `of_fragment` caches the groups that `tables`
    /// describes.
    fn group(
        &mut self,
        number: u32,
        tables: &Node<'_>,
        of_fragment: &mut Option<Vec<u16>>,
        budget: &mut Budget,
    ) -> Result<u16, MediaError> {
        let known = match number {
            0 => return Ok(0),
            1..=OF_FRAGMENT => &self.of_movie,
            _ => {
                if of_fragment.is_none() {
                    let described = group::descriptions(tables, budget)?.into_iter();
                    let numbers = described.map(|parameters| self.number(tables, parameters));
                    *of_fragment = Some(numbers.collect::<Result<_, _>>()?);
                }
                of_fragment.as_ref().unwrap_or(&self.of_movie)
            }
        };
        let first = if number > OF_FRAGMENT { OF_FRAGMENT + 1 } else { 1 };
        let group = known.get((number - first) as usize).copied();
        group.ok_or_else(|| {
            tables.invalid(format!("samples in group {number} of type 'seig'"), "a group that sgpd describes")
        })
    }
}
