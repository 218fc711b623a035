use super::*;

/// Every pattern of equal ids, beside ids that differ in one bit or in one half.
#[test]
fn a_bit_for_each_id_that_agrees() {
    const ID: u64 = 0x8000_0001_7fff_ffff;
    for other in [0, !0, ID ^ 1, ID ^ 1 << 63, ID & 0xffff_ffff, ID >> 32 << 32] {
        for pattern in 0..1 << WAYS {
            let ids = core::array::from_fn(|n| if pattern >> n & 1 == 1 { ID } else { other });
            let set = Set { ids, credit: core::array::from_fn(|_| Credit(ID)) };
            assert_eq!(set.agreeing(ID), pattern, "beside {other:x}");
        }
    }
}
