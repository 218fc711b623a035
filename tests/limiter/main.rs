//! Tests of limiters, hierarchies, in-flight limits, queues and client pacing, and of the metrics
//! and pictures that are made from their decisions.

mod bytes;
mod cancelled_bookings;
mod client_pacing;
mod client_pacing_simulation;
#[path = "../common/mod.rs"]
mod common;
mod give_back;
mod governor;
mod hierarchy;
mod hierarchy_fair;
mod idioms;
mod in_flight;
mod in_flight_adaptive;
mod in_flight_closed_loop;
mod in_flight_simulation;
mod latency_step;
mod limiter_change;
mod limiter_counts;
mod meter;
mod metrics;
#[path = "../overload/mod.rs"]
mod overload;
mod pictures;
mod queue;
mod queue_spare;
mod receipts;
mod stress;
mod striped;
mod take_many;
mod take_many_in_flight;
mod take_many_refusals;
mod until_ready;
