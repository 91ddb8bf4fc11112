//! Searches for the largest packet that a path carries, by trying sizes: sans-IO.

use super::super::facts::PathMtu;

/// Sizes of common links and tunnels, octets: Ethernet, PPPoE, GRE, 6in4, IPsec, WireGuard, GTP, and the minimum of
/// IPv6. Smaller ones are what a tunnel inside a tunnel leaves.
const SIZES: [u16; 18] =
    [1500, 1492, 1480, 1472, 1460, 1440, 1420, 1400, 1380, 1360, 1340, 1320, 1300, 1280, 1240, 1200, 1100, 1000];
/// Carried by every IPv6 path and nearly every IPv4 path.
const FLOOR: u16 = 1280;
/// Minimum expected of every IPv4 path.
const FLOOR_V4: u16 = 576;
/// Tries of a size before it counts as vanished. The first size gets more: it decides whether there is a search.
const TRIES_FIRST: u8 = 3;
const TRIES: u8 = 2;

/// A search on one path.
#[derive(Clone, Debug)]
pub struct Sizing {
    most: u16,
    is_v4: bool,
    found: PathMtu,
    /// The size under test, and how often it was tried.
    current: Option<(u16, u8)>,
}

impl Sizing {
    /// Creates a search up to packets of `most` octets.
    pub fn new(most: u16, is_v4: bool) -> Self {
        Self { most, is_v4, found: PathMtu::default(), current: Some((most, 0)) }
    }

    /// Returns the size to try next, or `None` when done.
    pub fn next(&mut self) -> Option<u16> {
        let (size, tries) = self.current.as_mut()?;
        *tries += 1;
        Some(*size)
    }

    /// Notes that the packet tried last arrived.
    pub fn answered(&mut self) {
        if let Some((size, _)) = self.current {
            self.found.carries = self.found.carries.max(size);
            self.choose();
        }
    }

    /// Notes that the last try got no answer.
    pub fn unanswered(&mut self) {
        let Some((size, tries)) = self.current else { return };
        let enough = if size == self.most { TRIES_FIRST } else { TRIES };
        if tries < enough {
            return;
        }
        self.found.vanishes = size;
        self.choose();
    }

    /// Notes the size that a router announced. Returns whether it is the next size to try; otherwise the message says
    /// nothing about the size under test.
    pub fn told(&mut self, mtu: u16) -> bool {
        let is_news = self.current.is_some_and(|(size, _)| mtu < size) && mtu >= FLOOR_V4;
        if is_news {
            self.found.told = mtu;
            self.current = Some((mtu, 0));
        }
        is_news
    }

    /// Returns the result. If no size was answered, it is empty: the server may not answer such packets at all.
    pub fn found(&self) -> PathMtu {
        if self.found.carries == 0 { PathMtu::default() } else { self.found }
    }

    /// Chooses the next size between the largest that arrives and the smallest that vanishes.
    fn choose(&mut self) {
        let PathMtu { carries, vanishes, told } = self.found;
        if carries >= self.most || vanishes == 0 || (told > 0 && carries >= told) {
            self.current = None;
            return;
        }
        if carries == 0 {
            let floors = [FLOOR, FLOOR_V4];
            let lower = floors.into_iter().find(|floor| *floor < vanishes && (self.is_v4 || *floor >= FLOOR));
            self.current = lower.map(|size| (size, 0));
            return;
        }
        let between: Vec<u16> = SIZES.into_iter().filter(|size| *size > carries && *size < vanishes).collect();
        self.current = between.get(between.len() / 2).map(|size| (*size, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a path that carries up to `carries` octets. Returns the result and the number of packets used.
    fn search(most: u16, carries: u16, is_v4: bool, told: Option<u16>) -> (PathMtu, usize) {
        let mut sizing = Sizing::new(most, is_v4);
        let mut packets = 0;
        while let Some(size) = sizing.next() {
            packets += 1;
            match told {
                _ if size <= carries => sizing.answered(),
                Some(mtu) => assert!(sizing.told(mtu)),
                None => sizing.unanswered(),
            }
        }
        (sizing.found(), packets)
    }

    #[test]
    fn a_search_finds_the_size_in_a_few_packets() {
        let found = |carries, vanishes, told| PathMtu { carries, vanishes, told };
        assert_eq!(search(1500, 1500, true, None), (found(1500, 0, 0), 1));
        assert_eq!(search(1500, 9000, false, None), (found(1500, 0, 0), 1));
        assert_eq!(search(1500, 1400, true, Some(1400)), (found(1400, 0, 1400), 2));
        for (carries, expected) in
            [(1400, found(1400, 1420, 0)), (1280, found(1280, 1300, 0)), (1499, found(1492, 1500, 0))]
        {
            let (sizes, packets) = search(1500, carries, true, None);
            assert_eq!(sizes, expected);
            assert!(packets <= 12, "{packets}");
        }
        assert_eq!(search(1500, 1250, true, None).0, found(1240, 1280, 0));
        assert_eq!(search(1500, 1000, true, None).0, found(1000, 1100, 0));
        assert_eq!(search(1500, 900, true, None).0, found(576, 1000, 0));
        assert_eq!(search(1500, 0, true, None).0, PathMtu::default());
        assert_eq!(search(1500, 0, false, None).0, PathMtu::default());
        assert_eq!(search(1280, 1280, false, None).0, found(1280, 0, 0));
        assert_eq!(search(536, 536, true, None).0, found(536, 0, 0));
    }

    #[test]
    fn a_router_that_says_nonsense_is_not_heard() {
        let mut sizing = Sizing::new(1500, true);
        sizing.next();
        for mtu in [0, 68, 1500, 9000] {
            assert!(!sizing.told(mtu));
            assert_eq!(sizing.found().told, 0);
        }
        sizing.answered();
        assert_eq!(sizing.next(), None);
    }

    #[test]
    fn one_lost_packet_is_no_black_hole() {
        let mut sizing = Sizing::new(1500, true);
        assert_eq!(sizing.next(), Some(1500));
        sizing.unanswered();
        assert_eq!(sizing.next(), Some(1500));
        sizing.answered();
        assert_eq!((sizing.next(), sizing.found().vanishes), (None, 0));
    }
}
