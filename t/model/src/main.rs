//! The protocol of the zone, run in every order that C11's memory model lets
//! a machine choose, by loom.
//!
//! It is no part of the product and reads no line of it: what it says of C is
//! in the table below, which t/util/orders.py compares with the sources.
//!
//!     kube-zone-model                all scenarios, then each one weakened
//!     kube-zone-model SCENARIO PLACE one of them, weakened there; "-": not
//!
//! A scenario is a writer and a reader.  At each place where C loads with
//! acquire or stores with release the order can be made relaxed, or a step
//! left out.  Where the protocol needs it the scenario must fail then: a model
//! that cannot fail shows nothing.
//!
//! The functions that are modelled, with the loads and stores of the image
//! that they make:
//!
//! | function | loads | stores |
//! |---|---|---|
//! | reader_size | 1 | 0 |
//! | reader_copy | 1 | 0 |
//! | reader_copy_record | 1 | 0 |
//! | reader_load_bundle | 1 | 0 |
//! | kube_zone_load_service | 1 | 0 |
//! | reader_key_match | 4 | 0 |
//! | reader_entry_match | 1 | 0 |
//! | reader_chain_find | 3 | 0 |
//! | reader_find | 2 | 0 |
//! | kube_zone_log_store | 0 | 1 |
//! | log_move | 0 | 3 |
//! | recover_bump | 0 | 1 |
//! | kube_zone_head_store | 0 | 1 |
//! | table_unlink | 1 | 1 |
//! | table_link | 1 | 4 |
//! | kube_zone_entry_take | 0 | 3 |
//!
//! Left out: table_link() clears a head that another process has written, and
//! kube_zone_entry_take() shows the highest entry, for walks.
//!
//! Copyright (C) the nginx-kube-informer authors
//! SPDX-License-Identifier: BSD-2-Clause

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use std::sync::Arc;

/// What is weakened in this run.
#[derive(Clone, Copy)]
struct Weak(&'static str);

impl Weak {
    /// kube_word_get(), kube_half_get()
    fn get(&self, place: &str, word: &AtomicU32) -> u32 {
        word.load(if self.0 == place {
            Ordering::Relaxed
        } else {
            Ordering::Acquire
        })
    }

    /// kube_word_set(), kube_half_set()
    fn set(&self, place: &str, word: &AtomicU32, value: u32) {
        word.store(
            value,
            if self.0 == place {
                Ordering::Relaxed
            } else {
                Ordering::Release
            },
        );
    }

    /// A step that may be left out.
    fn does(&self, step: &str) -> bool {
        self.0 != step
    }
}

/// A head is sequence << 8 | place; a place holds the two words of a record.
struct Log {
    head: AtomicU32,
    places: [[AtomicU32; 2]; 2],
}

impl Log {
    fn new() -> Self {
        let word = AtomicU32::new;
        Log {
            head: word(1 << 8),
            places: [[word(1), word(1)], [word(0), word(0)]],
        }
    }

    fn write(&self, weak: Weak, place: usize, value: u32) {
        weak.set("set record word", &self.places[place][0], value);
        weak.set("set record word", &self.places[place][1], value);
    }
}

/// An update, and another one in the room of the first record.
fn record(weak: Weak) {
    let log = Arc::new(Log::new());
    let theirs = log.clone();
    let writer = thread::spawn(move || {
        theirs.write(weak, 1, 2);
        weak.set("set head", &theirs.head, 2 << 8 | 1);
        theirs.write(weak, 0, 3);
        weak.set("set head", &theirs.head, 3 << 8);
    });

    let head = weak.get("get head", &log.head);
    let place = &log.places[(head & 0xff) as usize];
    let a = weak.get("get record word", &place[0]);
    let b = weak.get("get record word", &place[1]);

    if !weak.does("check the head again") || weak.get("get head again", &log.head) == head {
        assert!(a == b && a == head >> 8, "head {head:x} with {a} {b}");
    }
    writer.join().unwrap();
}

/// A Service with a ref to its slice, which moves; its old room is used again.
fn moved(weak: Weak) {
    let (head, reference) = (AtomicU32::new(1), AtomicU32::new(0));
    let all = Arc::new((head, reference, Log::new()));
    let theirs = all.clone();
    let writer = thread::spawn(move || {
        let (head, reference, log) = &*theirs;
        log.write(weak, 1, 1);
        if weak.does("bump after the ref") {
            weak.set("set ref", reference, 1);
            weak.set("set head", head, 2);
        } else {
            weak.set("set head", head, 2);
            weak.set("set ref", reference, 1);
        }
        log.write(weak, 0, 9);
    });

    let (head, reference, log) = &*all;
    let seen = weak.get("get head", head);
    let place = &log.places[weak.get("get ref", reference) as usize];
    let a = weak.get("get record word", &place[0]);
    let b = weak.get("get record word", &place[1]);

    if weak.get("get head again", head) == seen {
        assert!(a == 1 && b == 1, "slice with {a} {b}");
    }
    writer.join().unwrap();
}

/// The same, but the writer dies after the ref: its successor bumps the head.
fn crashed(weak: Weak) {
    let (head, reference) = (AtomicU32::new(1), AtomicU32::new(0));
    let all = Arc::new((head, reference, Log::new()));
    let theirs = all.clone();
    let writer = thread::spawn(move || {
        let (head, reference, log) = &*theirs;
        log.write(weak, 1, 1);
        weak.set("set ref", reference, 1);
        /* dead; the guard passes on with all that was stored */
        if weak.does("bump after a crash") {
            weak.set("set head", head, 2);
        }
        log.write(weak, 0, 9);
    });

    let (head, reference, log) = &*all;
    let seen = weak.get("get head", head);
    let place = &log.places[weak.get("get ref", reference) as usize];
    let a = weak.get("get record word", &place[0]);
    let b = weak.get("get record word", &place[1]);

    if weak.get("get head again", head) == seen {
        assert!(a == 1 && b == 1, "slice with {a} {b}");
    }
    writer.join().unwrap();
}

/// Chains of entries 1 .. 3; entry 0 is none.
struct Table {
    reuse: AtomicU32,
    buckets: [AtomicU32; 2],
    next: [AtomicU32; 4],
    hash: [AtomicU32; 4],
}

impl Table {
    /// Entries of bucket 0, in this order; hashes are those of the buckets.
    fn new(chain: &[u32]) -> Self {
        let word = |n: usize| AtomicU32::new(chain.get(n).copied().unwrap_or(0));
        let next = |e: u32| {
            let at = chain.iter().position(|&x| x == e);
            at.map_or(AtomicU32::new(0), |n| word(n + 1))
        };
        Table {
            reuse: AtomicU32::new(0),
            buckets: [word(0), AtomicU32::new(0)],
            next: [next(0), next(1), next(2), next(3)],
            hash: [(); 4].map(|_| AtomicU32::new(0)),
        }
    }

    /// reader_chain_find()
    fn walk(&self, weak: Weak, target: u32) -> bool {
        let mut e = weak.get("get bucket", &self.buckets[0]);
        for _ in 0..4 {
            if e == 0 {
                break;
            }
            if weak.get("get hash", &self.hash[e as usize]) == 0 && e == target {
                return true;
            }
            e = weak.get("get link", &self.next[e as usize]);
        }
        false
    }

    /// reader_find(), one try: None where it has to look again
    fn find(&self, weak: Weak, target: u32) -> Option<bool> {
        let reuse = weak.get("get reuse", &self.reuse);
        if self.walk(weak, target) {
            return Some(true);
        }
        let odd = reuse % 2 != 0 && weak.does("look again while reuse is odd");
        let same =
            !weak.does("look at reuse again") || weak.get("get reuse again", &self.reuse) == reuse;
        if !odd && same {
            return Some(false);
        }
        None
    }

    /// table_link(); first is what the only writer has stored there before: a
    /// load of its own would hide the reader's from loom 0.5, which then does
    /// not try the store between that and what follows
    fn link(&self, weak: Weak, e: u32, bucket: usize, first: u32) {
        weak.set("set hash", &self.hash[e as usize], bucket as u32);
        if weak.does("set link before bucket") {
            weak.set("set link", &self.next[e as usize], first);
            weak.set("set bucket", &self.buckets[bucket], e);
        } else {
            weak.set("set bucket", &self.buckets[bucket], e);
            weak.set("set link", &self.next[e as usize], first);
        }
    }
}

/// An entry that was in no chain goes into the one that is walked.
fn inserted(weak: Weak) {
    let table = Arc::new(Table::new(&[1]));
    let theirs = table.clone();
    let writer = thread::spawn(move || theirs.link(weak, 2, 0, 1));

    assert!(table.find(weak, 1) != Some(false), "entry 1 was there");
    writer.join().unwrap();
}

/// A freed entry leaves the chain that is walked for another one.
fn reused(weak: Weak) {
    let table = Arc::new(Table::new(&[1, 2, 3]));
    let theirs = table.clone();
    let writer = thread::spawn(move || {
        if weak.does("make reuse odd") {
            weak.set("set reuse odd", &theirs.reuse, 1);
        }
        weak.set("set link", &theirs.next[1], 3);
        theirs.link(weak, 2, 1, 0);
        weak.set("set reuse even", &theirs.reuse, 2);
    });

    assert!(table.find(weak, 3) != Some(false), "entry 3 was there");
    writer.join().unwrap();
}

/// A scenario, the places where it must fail, and those where it may not: an
/// order that another one nearby makes superfluous, as C has but one getter.
struct Scenario {
    name: &'static str,
    run: fn(Weak),
    needs: &'static [&'static str],
    spare: &'static [&'static str],
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "record",
        run: record,
        needs: &[
            "get head",
            "get record word",
            "set record word",
            "set head",
            "check the head again",
        ],
        spare: &["get head again"],
    },
    Scenario {
        name: "moved",
        run: moved,
        needs: &[
            "get head",
            "get ref",
            "get record word",
            "set record word",
            "set ref",
            "set head",
            "bump after the ref",
        ],
        spare: &["get head again"],
    },
    Scenario {
        name: "crashed",
        run: crashed,
        needs: &[
            "get head",
            "get ref",
            "get record word",
            "set record word",
            "set ref",
            "set head",
            "bump after a crash",
        ],
        spare: &["get head again"],
    },
    Scenario {
        name: "inserted",
        run: inserted,
        needs: &["get bucket", "set bucket", "set link before bucket"],
        spare: &["get hash", "set hash", "get reuse", "get reuse again"],
    },
    Scenario {
        name: "reused",
        run: reused,
        needs: &[
            "get link",
            "get reuse",
            "set link",
            "set reuse even",
            "make reuse odd",
            "look again while reuse is odd",
            "look at reuse again",
        ],
        spare: &["get hash", "set hash", "set reuse odd", "get reuse again"],
    },
];

/// Runs one scenario; a failure is a panic.
fn explore(name: &str, place: &'static str) {
    let scenario = SCENARIOS.iter().find(|s| s.name == name);
    let run = scenario.expect("no such scenario").run;
    loom::model(move || run(Weak(place)));
}

/// Runs it in a process of its own, for loom does not survive a panic.
fn holds(name: &str, place: &str) -> bool {
    let me = std::env::current_exe().expect("own path");
    let done = std::process::Command::new(me)
        .args([name, place])
        .output()
        .expect("own program");
    done.status.success()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.len() == 2 {
        return explore(&args[0], Box::leak(args[1].clone().into_boxed_str()));
    }

    let (mut bad, mut runs) = (0, 0);
    for s in SCENARIOS {
        let holding = std::iter::once(&"-").chain(s.spare).map(|p| (p, true));
        for (place, expected) in holding.chain(s.needs.iter().map(|p| (p, false))) {
            runs += 1;
            if holds(s.name, place) != expected {
                let what = if expected { "fails" } else { "does not fail" };
                println!("{}, weakened at \"{place}\": {what}", s.name);
                bad += 1;
            }
        }
    }
    println!("model: {runs} runs, {bad} not as they should be");
    std::process::exit((bad != 0) as i32);
}
