//! Classes with guaranteed rates and ceilings, in virtual time, beside a model in 128-bit numbers
//! that shares no code with the library.

use crate::common::{rounds, Rng, MIN, MS, SEC};
use std::collections::HashMap;
use tollbar::hierarchy::{ClassId, Hierarchy, HierarchyError, Share, LEVELS_MOST};
use tollbar::table::{OnFull, Options, PolicyId, Table};
use tollbar::{Decision, Policy, Reason, Verdict, NEVER};

const START: u64 = 50 * SEC;

fn table() -> Table {
    let options = Options { on_full: OnFull::Deny, ..Options::new(4_000) };
    Table::private(&options, &[Hierarchy::policy()]).expect("a table")
}

fn hierarchy(rate: &str, burst: u64) -> Hierarchy {
    Hierarchy::new(PolicyId::FIRST, rate, burst, 64).expect("a hierarchy")
}

/// A class of the model. Rates are (limit, period) in nanoseconds.
struct Class {
    parent: Option<usize>,
    guaranteed: Option<(i128, i128)>,
    ceiling: Option<(i128, i128)>,
    height: i128,
}

/// The definition: each node owes nanoseconds, and a permit costs it more if the node above owes
/// more.
struct Model {
    burst: i128,
    classes: Vec<Class>,
    /// When a node's debt is paid.
    paid: HashMap<(usize, Vec<u8>), i128>,
}

/// What the model says of a request.
#[derive(Debug, PartialEq)]
struct Answer {
    allowed: bool,
    wait: i128,
    interval: i128,
}

impl Model {
    fn ceiling(&self, class: usize) -> i128 {
        let own =
            self.classes[class].ceiling.map_or(0, |(limit, period)| (period + limit - 1) / limit);
        own.max(self.classes[class].parent.map_or(0, |parent| self.ceiling(parent)))
    }

    fn ask(&mut self, leaf: usize, key: &[u8], now: i128, cost: i128) -> Answer {
        let mut way = vec![leaf];
        while let Some(parent) = self.classes[way[0]].parent {
            way.insert(0, parent);
        }
        let node = |class: usize| (class, if class == leaf { key.to_vec() } else { Vec::new() });
        let (mut wait, mut above, mut charges) = (0, None, Vec::new());
        for (place, &class) in way.iter().enumerate() {
            let debt = (self.paid.get(&node(class)).copied().unwrap_or(0) - now).max(0);
            let ceiling = self.ceiling(class);
            let interval = match above {
                None => ceiling,
                Some((interval, debt)) => {
                    let guaranteed =
                        self.classes[class].guaranteed.map(|(limit, period)| period / limit);
                    let step = 4 * self.burst / 16;
                    let borrowed = (debt <= 4 * self.burst).then(|| {
                        let part = (debt % step) * 65_536 / step;
                        (interval + interval * part / 65_536)
                            * 2_i128.pow(u32::try_from(debt / step).expect("small"))
                    });
                    let least = guaranteed.into_iter().chain(borrowed).min().unwrap_or(1 << 39);
                    least.max(ceiling).min(1 << 39)
                }
            };
            let is_kept =
                way.get(place + 1).is_some_and(|&child| self.classes[child].guaranteed.is_some());
            let most = match self.classes[class].height {
                0 => self.burst,
                height if is_kept => self.burst * (1 + 4 * height),
                _ => self.burst * 4,
            };
            wait = wait.max(debt - most);
            charges.push((node(class), debt + (cost * interval).min((1 << 40) - most)));
            above = Some((interval, debt));
        }
        if wait == 0 {
            self.paid.extend(charges.into_iter().map(|(node, debt)| (node, now + debt)));
        }
        Answer { allowed: wait == 0, wait, interval: above.expect("a leaf").0 }
    }
}

fn answer(share: Share) -> Answer {
    Answer {
        allowed: share.decision.is_allowed(),
        wait: i128::from(share.decision.retry_after),
        interval: i128::from(share.interval),
    }
}

/// A tree of up to four levels with random rates, in the library and in the model, and the leaves.
fn random_tree(rng: &mut Rng) -> (Hierarchy, Model, Vec<(ClassId, bool)>) {
    let limit = rng.within(10, 5_000);
    // At least twenty permits.
    let burst = rng.pick(&[MS, 7_777_777, 250 * MS, 3 * SEC]).max(20 * (SEC / limit + 1));
    let mut tree = hierarchy(&format!("{limit}/s"), burst);
    let root = Class {
        parent: None,
        guaranteed: None,
        ceiling: Some((i128::from(limit), 1_000_000_000)),
        height: 0,
    };
    let mut model = Model { burst: i128::from(burst), classes: vec![root], paid: HashMap::new() };
    let mut keyed = vec![false];
    for n in 1..=rng.within(1, 12) {
        let parent = rng.below(n) as usize;
        let guaranteed = rng.within(0, 30);
        let ceiling = if rng.one_in(2) { 0 } else { rng.within(guaranteed.max(1), 2_000) };
        let text = |rate| if rate == 0 { String::new() } else { format!("{rate}/s") };
        let keys = if rng.one_in(3) { 2 } else { 1 };
        let added = tree.add(
            ClassId::new(parent as u32),
            format!("c{n}").as_bytes(),
            &text(guaranteed),
            &text(ceiling),
            keys,
        );
        let Ok(id) = added else { continue };
        let rate = |rate: u64| (rate != 0).then_some((i128::from(rate), 1_000_000_000));
        assert_eq!(id.number() as usize, model.classes.len());
        let class = Class {
            parent: Some(parent),
            guaranteed: rate(guaranteed),
            ceiling: rate(ceiling),
            height: 0,
        };
        model.classes.push(class);
        keyed.push(keys > 1);
        let (mut at, mut height) = (Some(parent), 1);
        while let Some(class) = at {
            model.classes[class].height = model.classes[class].height.max(height);
            (at, height) = (model.classes[class].parent, height + 1);
        }
        if rng.one_in(8) {
            break;
        }
    }
    let leaves = (0..model.classes.len()).filter(|&class| model.classes[class].height == 0);
    let leaves = leaves.map(|class| (ClassId::new(class as u32), keyed[class])).collect();
    (tree, model, leaves)
}

#[test]
fn every_answer_is_that_of_the_model() {
    let mut rng = Rng(52);
    let (mut admitted, mut refused) = (0, 0);
    for _ in 0..rounds(400) {
        let (tree, mut model, leaves) = random_tree(&mut rng);
        let table = table();
        let mut now = START;
        for _ in 0..1_000 {
            now += rng.skewed(SEC / 4);
            let (leaf, keyed) = rng.pick(&leaves);
            let key: &[u8] = if keyed { rng.pick(&[b"ann", b"bob"]) } else { b"" };
            let cost = if rng.one_in(10) { rng.within(0, 20) } else { 1 };
            let share = tree.take_at(&table, leaf, key, now, cost).expect("an answer");
            let expected = match cost {
                // It asks for a permit and takes none.
                0 => answer(share),
                _ => model.ask(leaf.number() as usize, key, i128::from(now), i128::from(cost)),
            };
            assert_eq!(answer(share), expected, "{tree:?} {leaf:?} {now} {cost}");
            if share.decision.is_allowed() {
                admitted += 1;
                continue;
            }
            refused += 1;
            // The wait is exact, to the nanosecond.
            let due = now + share.decision.retry_after;
            assert!(!tree
                .take_at(&table, leaf, key, due - 1, 0)
                .expect("an answer")
                .decision
                .is_allowed());
            assert!(tree
                .take_at(&table, leaf, key, due, 0)
                .expect("an answer")
                .decision
                .is_allowed());
        }
    }
    println!("{admitted} admitted, {refused} refused");
    assert!(admitted > rounds(10_000) && refused > rounds(10_000));
}

/// `remaining` is the number of requests that pass at this instant, as long as their interval does
/// not grow.
#[test]
fn remaining_is_what_a_leaf_can_take_at_its_interval() {
    let table = table();
    let mut tree = hierarchy("1000/s", 100 * MS);
    let leaf = tree.add(ClassId::ROOT, b"leaf", "", "50/s", 1).expect("a class");
    // 50/s for 100 ms, and one.
    for left in (0..6).rev() {
        let share = tree.take_at(&table, leaf, b"", START, 1).expect("an answer");
        assert_eq!((share.decision.is_allowed(), share.decision.remaining), (true, left));
        assert_eq!((share.interval, share.bound), (20 * MS, leaf));
    }
    let refused = tree.take_at(&table, leaf, b"", START, 1).expect("an answer");
    assert_eq!(
        (refused.decision.verdict, refused.decision.reason),
        (Verdict::Denied, Reason::Rate)
    );
    assert_eq!((refused.decision.retry_after, refused.bound), (20 * MS, leaf));
    assert_eq!(tree.burst_of(leaf), Some(5));
}

#[test]
fn one_leaf_borrows_all_that_is_idle() {
    let table = table();
    let mut tree = hierarchy("1000/s", 20 * MS);
    let acme = tree.add(ClassId::ROOT, b"acme", "10/s", "", 1).expect("a class");
    let users = tree.add(acme, b"users", "1/s", "", 10).expect("a class");
    let passed = (0..10 * SEC).step_by(100_000).filter(|at| {
        tree.take_at(&table, users, b"ann", START + at, 1).expect("an answer").decision.is_allowed()
    });
    let passed = passed.count() as u64;
    // 1000/s for 10 s. A leaf's slack is 20 ms, and the root's is 180 ms.
    assert!((9_990..=10_181).contains(&passed), "{passed}");
}

/// Borrowers take the whole rate. From the moment at which a guaranteed leaf asks, it gets its
/// rate, without a wait.
#[test]
fn a_guarantee_holds_beside_borrowers_at_once() {
    let options = Options { on_full: OnFull::Deny, ..Options::new(40_000) };
    let table = Table::private(&options, &[Hierarchy::policy()]).expect("a table");
    let mut tree = hierarchy("1000/s", 100 * MS);
    let greedy = tree.add(ClassId::ROOT, b"greedy", "", "", 1_000_000).expect("a class");
    let sure = tree.add(ClassId::ROOT, b"sure", "300/s", "", 1).expect("a class");
    let ask = |class, key: &[u8], at: u64| {
        tree.take_at(&table, class, key, START + at, 1).expect("an answer").decision.is_allowed()
    };
    // 100 times the rate, each request by a new borrower, who has borrowed nothing yet.
    let borrow = |from: u64, to: u64| {
        (from..to).step_by(10_000).filter(|at| ask(greedy, &at.to_be_bytes(), *at)).count() as u64
    };
    let alone = borrow(0, 2 * SEC);
    assert!((2_000..=2_500).contains(&alone), "{alone}");
    let mut granted = 0;
    for at in (2 * SEC..7 * SEC).step_by(100_000) {
        if at % (SEC / 300) < 100_000 {
            assert!(ask(sure, b"", at), "a guaranteed request at {at} was refused");
            granted += 1;
        }
        borrow(at, at + 100_000);
    }
    assert!(granted >= 1_499, "{granted}");
}

/// Every interval, every node: no more than the ceiling for the interval and the slack, and one
/// request.
#[test]
fn no_interval_admits_more_than_the_ceiling() {
    let mut rng = Rng(53);
    for _ in 0..rounds(60) {
        let table = table();
        let mut tree = hierarchy("200/s", 100 * MS);
        let acme = tree.add(ClassId::ROOT, b"acme", "20/s", "100/s", 1).expect("a class");
        let users = tree.add(acme, b"users", "2/s", "30/s", 10).expect("a class");
        let other = tree.add(ClassId::ROOT, b"other", "", "", 10).expect("a class");
        let (mut now, mut admitted): (u64, Vec<(u64, u64, u64)>) = (START, Vec::new());
        for _ in 0..2_000 {
            now += rng.skewed(40 * MS);
            let user = rng.below(12);
            let class = if user < 6 { users } else { other };
            let cost = rng.within(1, 3);
            if tree
                .take_at(&table, class, &[user as u8], now, cost)
                .expect("an answer")
                .decision
                .is_allowed()
            {
                admitted.push((now, user, cost));
            }
        }
        // (who, rate a second, slack in ns)
        let within = |counts: &dyn Fn(u64) -> bool, rate: u64, slack: u64| {
            let of: Vec<_> = admitted.iter().filter(|(_, user, _)| counts(*user)).collect();
            for (n, (from, ..)) in of.iter().enumerate() {
                let mut sum = 0;
                for (to, _, cost) in &of[n..] {
                    // The last request may be as large as any.
                    let bound = u128::from(rate) * u128::from(to - from + slack) / u128::from(SEC);
                    assert!(u128::from(sum) <= bound, "{sum} in {} ns at {rate}/s", to - from);
                    sum += cost;
                }
            }
        };
        within(&|_| true, 200, 9 * 100 * MS);
        within(&|user| user < 6, 100, 5 * 100 * MS);
        (0..6).for_each(|one| within(&|user| user == one, 30, 100 * MS));
    }
}

#[test]
fn processes_find_the_same_nodes_by_name() {
    let table = table();
    let tree = |rate: &str, names: [&[u8]; 2]| {
        let mut tree = hierarchy(rate, 20 * MS);
        let ids = names.map(|name| tree.add(ClassId::ROOT, name, "", "100/s", 1).expect("a class"));
        (tree, ids)
    };
    let (first, [a, _]) = tree("1000/s", [b"a", b"b"]);
    // Another order, and another rate of the root.
    let (second, [b, again]) = tree("2000/s", [b"b", b"a"]);
    let ask = |tree: &Hierarchy, id| {
        tree.take_at(&table, id, b"", START, 1).expect("an answer").decision.is_allowed()
    };
    assert!((0..3).all(|_| ask(&first, a)) && !ask(&first, a));
    assert!(!ask(&second, again));
    assert!(ask(&second, b));
}

#[test]
fn a_class_that_cannot_be_is_refused() {
    let table = table();
    let new =
        |rate, burst, classes| Hierarchy::new(PolicyId::FIRST, rate, burst, classes).map(|_| ());
    for rate in
        ["", "0/s", "1000001/s", "1/h", "10/s burst 3", "10/s algo pacer", "10/s; 100/min", "many"]
    {
        assert_eq!(new(rate, SEC, 4), Err(HierarchyError::Rate), "{rate}");
    }
    assert_eq!(new("10/s", MS - 1, 4), Err(HierarchyError::Burst));
    assert_eq!(new("10/s", 2 * SEC - 1, 4), Err(HierarchyError::Burst), "19 permits");
    assert_eq!(new("10/s", 10 * SEC + 1, 4), Err(HierarchyError::Burst));
    assert_eq!(new("10/s", 2 * SEC, 0), Err(HierarchyError::Classes));
    assert_eq!(new("10/s", 2 * SEC, 65_537), Err(HierarchyError::Classes));

    let mut tree = Hierarchy::new(PolicyId::FIRST, "100/s", SEC, 4).expect("a hierarchy");
    let a = tree.add(ClassId::ROOT, b"a", "60/s", "80/s", 1).expect("a class");
    let mut add = |parent, name: &[u8], guaranteed, ceiling, keys| {
        tree.add(parent, name, guaranteed, ceiling, keys)
    };
    assert_eq!(add(ClassId::ROOT, b"b", "41/s", "", 1), Err(HierarchyError::Guarantee));
    assert_eq!(add(ClassId::ROOT, b"b", "21/s", "", 2), Err(HierarchyError::Guarantee));
    assert_eq!(add(ClassId::ROOT, b"b", "", "", 0), Err(HierarchyError::Keys), "E9");
    assert_eq!(add(a, b"b", "61/s", "", 1), Err(HierarchyError::Guarantee));
    assert_eq!(add(ClassId::ROOT, b"b", "30/s", "20/s", 1), Err(HierarchyError::Guarantee));
    assert_eq!(add(ClassId::ROOT, b"", "", "", 1), Err(HierarchyError::Name));
    assert_eq!(add(ClassId::ROOT, b"a", "", "", 1), Err(HierarchyError::Name));
    assert_eq!(add(ClassId::ROOT, b"b", "", "1/h", 1), Err(HierarchyError::Rate));
    assert_eq!(add(ClassId::new(2), b"b", "", "", 1), Err(HierarchyError::NoSuchClass));
    // 40/s = 2400/min: nothing is left.
    let b = add(ClassId::ROOT, b"b", "1200/min", "", 2).expect("a class");
    assert_eq!(add(b, b"c", "", "", 1), Err(HierarchyError::Levels));
    assert_eq!(add(ClassId::ROOT, b"c", "1/8min", "", 1), Err(HierarchyError::Guarantee));
    // The same name below another class.
    add(a, b"a", "", "", 1).expect("a class");
    assert_eq!(add(ClassId::ROOT, b"d", "", "", 1), Err(HierarchyError::Classes));

    let ask = |class, cost| tree.take_at(&table, class, b"k", START, cost);
    assert_eq!(ask(a, 1), Err(HierarchyError::NotALeaf));
    assert_eq!(ask(ClassId::new(9), 1), Err(HierarchyError::NoSuchClass));
    let never = ask(b, 1_000_000_000).expect("an answer").decision;
    assert_eq!((never.verdict, never.retry_after), (Verdict::Never, NEVER));
    assert!(ask(b, 1).expect("an answer").decision.is_allowed(), "the refusal charged nothing");

    let plain =
        Table::private(&Options::new(1_000), &["10/s".parse::<Policy>().expect("a policy")])
            .expect("a table");
    assert_eq!(tree.take_at(&plain, b, b"k", START, 1), Err(HierarchyError::Policy));
    let levels =
        |tree: &mut Hierarchy, id, n: usize| tree.add(id, format!("{n}").as_bytes(), "", "", 1);
    let mut deep = hierarchy("10/s", 2 * SEC);
    let last =
        (1..LEVELS_MOST).fold(ClassId::ROOT, |id, n| levels(&mut deep, id, n).expect("a level"));
    assert_eq!(levels(&mut deep, last, 99), Err(HierarchyError::Levels));
    assert!(deep.take_at(&table, last, b"", START, 1).expect("an answer").decision.is_allowed());
    assert_eq!(
        deep.take_at(&table, last, b"", START + MIN, 1).expect("an answer").interval,
        100 * MS
    );
}

#[test]
fn the_root_alone_takes_requests() {
    let table = table();
    let tree = hierarchy("10/s", 2 * SEC);
    let ask = |at| {
        tree.take_at(&table, ClassId::ROOT, b"", START + at, 1)
            .expect("an answer")
            .decision
            .is_allowed()
    };
    assert!((0..21).all(|_| ask(0)) && !ask(0) && !ask(100 * MS - 1) && ask(100 * MS));
}

/// A full table refuses a new leaf, and charges no node above it.
#[test]
fn a_full_table_refuses_and_charges_nothing() {
    let options = Options { on_full: OnFull::Deny, ..Options::new(1) };
    let table =
        Table::private(&options, &[Hierarchy::policy(), "1/day".parse().expect("a policy")])
            .expect("a table");
    let mut tree = hierarchy("1000/s", 100 * MS);
    let users = tree.add(ClassId::ROOT, b"users", "", "", 100_000).expect("a class");
    assert!(tree
        .take_at(&table, users, b"first", START, 1)
        .expect("an answer")
        .decision
        .is_allowed());
    let day = PolicyId::new(1);
    let stored = (0..20_000_u64)
        .filter(|key| table.check_at(day, &key.to_be_bytes(), START, 1).is_allowed())
        .count();
    assert!(stored > 4_000, "{stored}");
    let at = START + 10 * MS;
    let ask = |key: u64| {
        tree.take_at(&table, users, &key.to_be_bytes(), at, 1).expect("an answer").decision
    };
    let (admitted, refused): (Vec<_>, Vec<_>) = (0..200).map(ask).partition(Decision::is_allowed);
    // Under some seeds a few of the 200 keys find a slot.
    assert!(
        refused.len() > 190 && refused.iter().all(|decision| decision.reason == Reason::TableFull),
        "{refused:?}"
    );
    // The first key's debt is paid. A request for no permits returns what the root owes: a
    // millisecond for each admitted request.
    let root =
        tree.take_at(&table, users, b"first", at, 0).expect("an answer").decision.reset_after;
    assert_eq!(root, admitted.len() as u64 * MS, "the root was charged for a refused request");
}
