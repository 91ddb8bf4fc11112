//! Prefetching of memory into the cache.

/// Octets of a cache line.
const LINE_BYTES: usize = 64;

/// Asks the CPU to load `value` into the cache, for use a little later. Has no other effect.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    let start = core::ptr::from_ref(value).cast::<i8>();
    (0..size_of_val(value)).step_by(LINE_BYTES).for_each(|offset| prefetch_line(start.wrapping_add(offset)));
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn prefetch_line(address: *const i8) {
    // SAFETY: a prefetch reads nothing that the program sees, and never faults, whatever the address.
    unsafe { core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address) };
}

/// On other architectures stable Rust has no such instruction.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn prefetch_line(_address: *const i8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_else_happens() {
        let values = [7_u8; 1000];
        for end in [0, 1, 64, 65, 1000] {
            prefetch(&values[..end]);
        }
        prefetch(&());
        assert_eq!(values, [7; 1000]);
    }
}
