//! MP_PRIO (RFC 8684 section 3.3.8).

/// Changes the priority of the subflow that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpPrio {
    /// B: use this subflow only if no regular one works.
    pub backup: bool,
}
