//! A table by IP address, for look-ups per packet.

use core::net::IpAddr;

/// Values by address, in ascending lists: a look-up among a thousand addresses takes ten comparisons of one word.
#[derive(Clone, Debug)]
pub(crate) struct AddressTable<T> {
    v4: Vec<(u32, T)>,
    v6: Vec<(u128, T)>,
}

impl<T> Default for AddressTable<T> {
    fn default() -> Self {
        Self { v4: Vec::new(), v6: Vec::new() }
    }
}

impl<T: Copy> AddressTable<T> {
    /// Sets the value of `address`, replacing any earlier one.
    pub(crate) fn insert(&mut self, address: IpAddr, value: T) {
        match address {
            IpAddr::V4(address) => insert(&mut self.v4, address.to_bits(), value),
            IpAddr::V6(address) => insert(&mut self.v6, address.to_bits(), value),
        }
    }

    /// Returns the value of `address`.
    #[inline]
    pub(crate) fn get(&self, address: IpAddr) -> Option<T> {
        match address {
            IpAddr::V4(address) => self.get_v4(address.to_bits()),
            IpAddr::V6(address) => get(&self.v6, address.to_bits()),
        }
    }

    /// Returns the value of an IPv4 address.
    #[inline]
    pub(crate) fn get_v4(&self, address: u32) -> Option<T> {
        // Most vertices have no host routes.
        if self.v4.is_empty() { None } else { get(&self.v4, address) }
    }
}

fn insert<K: Ord + Copy, T>(ascending: &mut Vec<(K, T)>, key: K, value: T) {
    match ascending.binary_search_by_key(&key, |(known, _)| *known) {
        Ok(position) => ascending[position].1 = value,
        Err(position) => ascending.insert(position, (key, value)),
    }
}

#[inline]
fn get<K: Ord + Copy, T: Copy>(ascending: &[(K, T)], key: K) -> Option<T> {
    let position = ascending.binary_search_by_key(&key, |(known, _)| *known).ok()?;
    Some(ascending[position].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_value_of_an_address_counts() {
        let mut table = AddressTable::default();
        let address = |text: &str| -> IpAddr { text.parse().unwrap() };
        for (text, value) in [("10.0.0.9", 9), ("10.0.0.1", 1), ("::ffff:10.0.0.1", 6), ("10.0.0.9", 90), ("::1", 7)] {
            table.insert(address(text), value);
        }
        let found =
            ["10.0.0.1", "10.0.0.9", "::ffff:10.0.0.1", "::1", "10.0.0.2", "::2"].map(|text| table.get(address(text)));
        assert_eq!(found, [Some(1), Some(90), Some(6), Some(7), None, None]);
    }
}
