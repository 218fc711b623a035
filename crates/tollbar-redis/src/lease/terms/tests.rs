//! Tests of the terms.

use super::*;

fn terms(text: &str, options: Options) -> Result<Terms, TermsError> {
    Terms::new(&text.parse::<Policy>().expect("a policy"), &options)
}

#[test]
fn twenty_thousand_a_second() {
    let options = Options { overdraft: 0, life: 50_000_000, ..Options::new(4) };
    let terms = terms("20000/s burst 2000", options).expect("terms");
    assert_eq!((terms.num, terms.den), (1, 50));
    assert_eq!((terms.cap, terms.most), (100_000, 2000));
    assert_eq!((terms.charge(3), terms.fitting(149)), (150, 2));
}

#[test]
fn a_permit_may_take_a_fraction_of_a_microsecond() {
    let terms = terms("3/s burst 300", Options { overdraft: 0, ..Options::new(2) }).expect("terms");
    assert_eq!((terms.num, terms.den), (3, 1_000_000));
    assert_eq!((terms.charge(1), terms.charge(3)), (333_334, 1_000_000));
    assert_eq!(terms.fitting(999_999), 2);
}

#[test]
fn what_cannot_be_leased_is_refused() {
    let refused = |text, options, error| assert_eq!(terms(text, options), Err(error), "{text}");
    refused("10/s algo fixed-window", Options::new(2), TermsError::Algorithm);
    refused("10/s borrow", Options::new(2), TermsError::Algorithm);
    refused("10/s; 1000/day", Options::new(2), TermsError::Algorithm);
    refused("10/s ban 1h", Options::new(2), TermsError::Algorithm);
    refused("10/s init 0", Options::new(2), TermsError::Algorithm);
    refused("10/s reserve low 2", Options::new(2), TermsError::Algorithm);
    refused("0/s", Options::new(2), TermsError::Algorithm);
    refused("10/s", Options::new(0), TermsError::Nodes);
    refused("10/s", Options { life: 999_999, ..Options::new(1) }, TermsError::Life);
    refused("10/s", Options { capacity: 0, ..Options::new(1) }, TermsError::Capacity);
    refused(
        "10/s burst 10",
        Options { overdraft: 128, ..Options::new(1) },
        TermsError::BurstTooSmall,
    );
    refused("10/s burst 1000", Options { overdraft: 128, ..Options::new(1) }, TermsError::TooLarge);
    refused(
        "10/s burst 10",
        Options { overdraft: 5, ..Options::new(2) },
        TermsError::BurstTooSmall,
    );
    refused("7/day burst 1000000", Options::new(2), TermsError::TooLarge);
    assert!(terms("7/day", Options::new(2)).is_ok());
    assert!(terms("10000000000/s", Options::new(2)).is_ok());
}
