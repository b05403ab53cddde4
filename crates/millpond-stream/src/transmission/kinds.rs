//! How transmissions are told among modules: they take frames from pipes as modules do.

use crate::kind::ModuleKind;

/// The transmission to one receiver.
pub(crate) const KIND: ModuleKind =
    ModuleKind { name: "transmission", about: "sends frames to a receiver when they are due", inputs: 1, outputs: 0 };

/// The transmission to all receivers of a group.
pub(crate) const MULTICAST: ModuleKind = ModuleKind {
    name: "multicast",
    about: "sends frames to a multicast group when they are due",
    inputs: 1,
    outputs: 0,
};
