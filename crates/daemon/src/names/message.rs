//! A DNS query and its answer (RFC 1035 section 4). The octets come from a network and may be anything.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};

/// Maximum length of an answer without EDNS (RFC 1035 section 4.2.1), octets.
pub const ANSWER_BYTES_MAX: usize = 512;

/// The address family that a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    const fn record(self) -> TYPE {
        match self {
            Self::V4 => TYPE::A,
            Self::V6 => TYPE::AAAA,
        }
    }
}

/// A name server's answer about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Its addresses of one family; if empty, the name exists without any.
    Addresses(Vec<IpAddr>),
    /// The name does not exist.
    NoSuchName,
    /// The server could not find it, refuses to answer, or its answer did not fit into a datagram.
    CannotTell,
}

/// Returns a query for the addresses of a name, or `None` if it is no valid name (RFC 1035 section 2.3.4).
pub fn question(id: u16, name: &str, family: Family) -> Option<Vec<u8>> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name).ok()?;
    packet.questions.push(Question::new(name, QTYPE::TYPE(family.record()), QCLASS::CLASS(CLASS::IN), false));
    packet.build_bytes_vec().ok()
}

/// Returns the content of `octets`, if they answer that query.
pub fn answer(octets: &[u8], id: u16, name: &str, family: Family) -> Option<Said> {
    let packet = Packet::parse(octets).ok()?;
    let asked = packet.questions.first()?;
    let is_ours = packet.id() == id
        && packet.has_flags(PacketFlag::RESPONSE)
        && asked.qtype == QTYPE::TYPE(family.record())
        && asked.qname.to_string().eq_ignore_ascii_case(name.trim_end_matches('.'));
    if !is_ours {
        return None;
    }
    match packet.rcode() {
        RCODE::NoError => {}
        RCODE::NameError => return Some(Said::NoSuchName),
        _ => return Some(Said::CannotTell),
    }
    // Addresses behind aliases (CNAME) have other owners; a recursive server only returns those that belong here.
    let address = |data: &RData<'_>| match data {
        RData::A(record) => Some(IpAddr::V4(Ipv4Addr::from(record.address))),
        RData::AAAA(record) => Some(Ipv6Addr::from(record.address).to_canonical()),
        _ => None,
    };
    let addresses: Vec<_> = packet.answers.iter().filter_map(|record| address(&record.rdata)).collect();
    // The addresses may be among the records that are missing (RFC 2181 section 9). Those that are there will do.
    let is_cut = packet.has_flags(PacketFlag::TRUNCATION);
    Some(if is_cut && addresses.is_empty() { Said::CannotTell } else { Said::Addresses(addresses) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{A, AAAA};

    use super::*;

    /// Returns a server's answer to `question`.
    fn answered(question: &[u8], change: impl FnOnce(&mut Packet<'_>)) -> Vec<u8> {
        let mut packet = Packet::parse(question).unwrap().into_reply();
        let name = packet.questions[0].qname.clone();
        let data = match packet.questions[0].qtype {
            QTYPE::TYPE(TYPE::A) => RData::A(A { address: 0xc000_0201 }),
            _ => RData::AAAA(AAAA { address: 1 }),
        };
        packet.answers.push(ResourceRecord::new(name, CLASS::IN, 60, data));
        change(&mut packet);
        packet.build_bytes_vec().unwrap()
    }

    #[test]
    fn an_answer_is_read() {
        for (family, address) in
            [(Family::V4, IpAddr::from([192, 0, 2, 1])), (Family::V6, IpAddr::from(1u128.to_be_bytes()))]
        {
            let asked = question(7, "a.Example", family).unwrap();
            let octets = answered(&asked, |_| {});
            assert_eq!(answer(&octets, 7, "a.example", family), Some(Said::Addresses(vec![address])));
            let without = |code: RCODE| {
                let octets = answered(&asked, |packet| {
                    packet.answers.clear();
                    *packet.rcode_mut() = code;
                });
                answer(&octets, 7, "a.example", family)
            };
            assert_eq!(without(RCODE::NoError), Some(Said::Addresses(Vec::new())));
            assert_eq!(without(RCODE::NameError), Some(Said::NoSuchName));
            assert_eq!(without(RCODE::ServerFailure), Some(Said::CannotTell));
            assert_eq!(without(RCODE::Refused), Some(Said::CannotTell));
        }
    }

    /// The address is given as an IPv6 one (RFC 4291 section 2.5.5.2), but is reached with IPv4.
    #[test]
    fn an_ipv4_address_in_the_look_of_ipv6_is_one_of_ipv4() {
        let asked = question(7, "a.example", Family::V6).unwrap();
        let octets = answered(&asked, |packet| {
            packet.answers[0].rdata = RData::AAAA(AAAA { address: 0xffff_c000_0201 });
        });
        let expected = Said::Addresses(vec![IpAddr::from([192, 0, 2, 1])]);
        assert_eq!(answer(&octets, 7, "a.example", Family::V6), Some(expected));
    }

    #[test]
    fn an_absolute_name_is_asked_for_without_its_dot() {
        assert_eq!(question(7, "a.example.", Family::V4), question(7, "a.example", Family::V4));
        let octets = answered(&question(7, "a.example.", Family::V4).unwrap(), |_| {});
        assert!(answer(&octets, 7, "a.example.", Family::V4).is_some());
    }

    #[test]
    fn an_answer_that_was_cut_does_not_deny_addresses() {
        let asked = question(7, "a.example", Family::V4).unwrap();
        let cut = |has_record: bool| {
            let octets = answered(&asked, |packet| {
                packet.answers.truncate(usize::from(has_record));
                packet.set_flags(PacketFlag::TRUNCATION);
            });
            answer(&octets, 7, "a.example", Family::V4)
        };
        assert_eq!(cut(false), Some(Said::CannotTell));
        assert_eq!(cut(true), Some(Said::Addresses(vec![IpAddr::from([192, 0, 2, 1])])));
    }

    #[test]
    fn what_answers_something_else_is_none() {
        let asked = question(7, "a.example", Family::V4).unwrap();
        let octets = answered(&asked, |_| {});
        assert_eq!(answer(&octets, 8, "a.example", Family::V4), None, "another number");
        assert_eq!(answer(&octets, 7, "b.example", Family::V4), None, "another name");
        assert_eq!(answer(&octets, 7, "a.example", Family::V6), None, "another family");
        assert_eq!(answer(&asked, 7, "a.example", Family::V4), None, "a question");
    }

    #[test]
    fn what_cannot_be_a_name_is_not_asked_for() {
        assert_eq!(question(1, &"a".repeat(64), Family::V4), None);
        assert_eq!(question(1, &"a.".repeat(200), Family::V4), None);
    }

    proptest! {
        #[test]
        fn whatever_arrives_is_read_without_a_panic(octets in proptest::collection::vec(any::<u8>(), 0..600)) {
            answer(&octets, 7, "a.example", Family::V4);
        }

        #[test]
        fn answers_with_errors_are_read_without_a_panic(place in 0usize..60, octet: u8) {
            let asked = question(7, "a.example", Family::V4).unwrap();
            let mut octets = answered(&asked, |_| {});
            let place = place % octets.len();
            octets[place] = octet;
            answer(&octets, 7, "a.example", Family::V4);
        }
    }
}
