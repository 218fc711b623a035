use super::*;

/// The buckets that the first two parts leave over become spare buckets: none in a small table,
/// fewer than 512 in a large one.
#[test]
fn one_in_fifteen_is_spare() {
    let edges = [BUCKETS_LEAST, BUCKETS_LEAST + 1, SMALL - 1, SMALL, 312_500, BUCKETS_MOST];
    for asked in (BUCKETS_LEAST..SMALL + 5000).step_by(97).chain(edges) {
        let buckets = BucketParts::round_up(asked);
        assert!((asked..asked + 3 * PART_UNIT).contains(&buckets), "{buckets} for {asked}");
        assert_eq!(buckets, BucketParts::round_up(buckets), "of {asked}");
        let BucketParts { half, spares } = BucketParts::new(buckets);
        assert_eq!((half % PART_UNIT, 2 * half + spares), (0, buckets));
        let surplus = spares - least_spares(buckets);
        assert!(
            if asked < SMALL { surplus == 0 } else { surplus < 2 * PART_UNIT },
            "{surplus} too many of {asked}"
        );
    }
}
