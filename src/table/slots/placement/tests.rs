use super::*;
use crate::table::memory::mix::mix;
use crate::table::memory::sizes::{BUCKETS_LEAST, BUCKETS_MOST};

/// Buckets are in range and different, and tag and bucket give the hash back, in tables of the
/// smallest and largest sizes, too.
#[test]
fn a_tag_and_a_bucket_are_a_hash() {
    for buckets in [BUCKETS_LEAST, BUCKETS_LEAST + 1, 5000, 312_500, (1 << 32) - 5, BUCKETS_MOST] {
        let placement = Placement::new(buckets);
        for n in 0..20_000 {
            // The lowest and highest tags, too.
            let hash = match n % 4 {
                0 => mix(n) | TAG << REST_BITS,
                1 => rest(mix(n)),
                _ => mix(n),
            };
            let (first, second, spare) = placement.buckets(hash);
            let main = 2 * placement.parts.half;
            assert!(first < placement.parts.half && (placement.parts.half..main).contains(&second));
            assert!((main..buckets).contains(&spare));
            for bucket in [first, second, spare] {
                assert_eq!(
                    placement.hash_of(tag(hash), bucket),
                    Some(hash),
                    "{hash:x} in {bucket} of {buckets}"
                );
            }
            assert_eq!(
                placement.hash_in_second(tag(hash), second),
                hash,
                "in {second} of {buckets}"
            );
        }
    }
}

/// No bucket belongs to two hashes of one tag.
#[test]
fn buckets_of_one_tag_are_all_different() {
    for buckets in [BUCKETS_LEAST, BUCKETS_LEAST + 7, 4096] {
        let placement = Placement::new(buckets);
        for n in 0..200 {
            let tag = mix(n) & TAG;
            let mut seen = std::collections::HashSet::new();
            for rest in 0..RESTS {
                let (first, second, spare) = placement.buckets(tag << REST_BITS | rest);
                assert!([first, second, spare].into_iter().all(|bucket| seen.insert(bucket)));
            }
        }
    }
}
