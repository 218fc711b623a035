use super::names_counter;

#[test]
fn the_counter_is_found_by_its_whole_name() {
    for list in ["tsc kvm-clock \n", "kvm-clock tsc", "tsc", "hpet tsc acpi_pm\n"] {
        assert!(names_counter(list.as_bytes()), "{list:?}");
    }
    for list in [
        "kvm-clock \n",
        "hpet acpi_pm\n",
        "hyperv_clocksource_tsc_page acpi_pm\n",
        "tsc-early\n",
        "\n",
    ] {
        assert!(!names_counter(list.as_bytes()), "{list:?}");
    }
}
