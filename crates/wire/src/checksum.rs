//! The Internet checksum (RFC 1071), for IP and TCP headers and for MPTCP data (RFC 8684 section 3.3.1).
