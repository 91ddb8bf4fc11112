//! MP_TCPRST (RFC 8684 section 3.6).

/// Why the subflow is reset; travels on a RST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpTcpRst {
    /// T: the cause is transient, a new subflow may work.
    pub transient: bool,
    /// The cause.
    pub reason: ResetReason,
}

/// Reason codes (RFC 8684 section 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetReason {
    /// 0x00
    Unspecified,
    /// 0x01
    MptcpSpecific,
    /// 0x02
    LackOfResources,
    /// 0x03
    AdministrativelyProhibited,
    /// 0x04
    TooMuchOutstandingData,
    /// 0x05
    UnacceptablePerformance,
    /// 0x06
    MiddleboxInterference,
    /// A code this RFC does not define.
    Other(u8),
}
