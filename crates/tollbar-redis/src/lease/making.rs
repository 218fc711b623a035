//! Making a node, and attaching to an existing one.

use super::layout::{Fixed, Header, Layout};
use super::node::Node;
use super::terms::{Fallback, Options, Terms, TermsError};
use super::NodeError;
use core::ptr::NonNull;
use rapidhash::v3::RapidSecrets;
use tollbar::clock::Source;
use tollbar::internal::{random_u64, Region};
use tollbar::policy::Policy;
use tollbar::table::{self, Table};

impl Node {
    /// The bytes of memory that a node takes. Errors: as [`Node::init_in`], but for the name and
    /// the memory.
    pub fn bytes_for(policy: &Policy, options: &Options) -> Result<u64, NodeError> {
        let terms = Terms::new(policy, options)?;
        Ok(Layout::new(
            options.capacity,
            Table::bytes_for(&reserve_options(options), &reserves(&terms)?)?,
        )?
        .bytes)
    }

    /// Makes a node that only this process uses.
    pub fn private(name: &str, policy: &Policy, options: &Options) -> Result<Node, NodeError> {
        Node::make(name, policy, options, Region::private)
    }

    /// Makes a node that this process shares with the processes it forks later.
    pub fn shared(name: &str, policy: &Policy, options: &Options) -> Result<Node, NodeError> {
        Node::make(name, policy, options, Region::shared)
    }

    /// Makes a node in the first [`Node::bytes_for`] bytes of the caller's memory.
    ///
    /// `name` is the limit's name in the store: 1 to 64 visible ASCII characters without braces.
    /// All machines of a limit use the same name.
    ///
    /// Errors: [`NodeError::Terms`] for a policy, options or a name that cannot be leased;
    /// [`NodeError::Table`] for memory that is too short or not aligned to a cache line.
    ///
    /// # Safety
    /// `memory` is valid for reads and writes of `length` bytes as long as the node lives, and only
    /// nodes access it.
    pub unsafe fn init_in(
        memory: NonNull<u8>,
        length: usize,
        name: &str,
        policy: &Policy,
        options: &Options,
    ) -> Result<Node, NodeError> {
        Node::make(name, policy, options, |needed| {
            if length < needed {
                return Err(table::TableError::Room);
            }
            // SAFETY: the caller promises `length` valid bytes, and `needed` is at most that.
            let region = unsafe { Region::borrowed(memory, needed) }?;
            // SAFETY: the first `needed` of the caller's `length` bytes; only nodes access them,
            // and none is made yet.
            unsafe { memory.as_ptr().write_bytes(0, needed) };
            Ok(region)
        })
    }

    /// Attaches to the node in the caller's memory, which another process may have made.
    ///
    /// Errors: [`NodeError::NotANode`] if the memory holds no node of this version or is too short
    /// for it; [`NodeError::Table`] if it is not aligned to a cache line or the reserve's table is
    /// damaged.
    ///
    /// # Safety
    /// As [`Node::init_in`].
    pub unsafe fn attach_in(memory: NonNull<u8>, length: usize) -> Result<Node, NodeError> {
        if length < Layout::RING_AT {
            return Err(NodeError::NotANode);
        }
        // Refuses memory that is not aligned.
        // SAFETY: the caller promises `length` valid bytes, and RING_AT is at most that.
        unsafe { Region::borrowed(memory, Layout::RING_AT) }?;
        // SAFETY: a header fits into RING_AT bytes, `memory` is aligned, and the words that others
        // change are atomic.
        let header = unsafe { memory.cast::<Header>().as_ref() };
        let fixed = header.inspect().ok_or(NodeError::NotANode)?;
        let needed = usize::try_from(fixed.bytes).map_err(|_| NodeError::NotANode)?;
        if length < needed {
            return Err(NodeError::NotANode);
        }
        // SAFETY: the caller promises `length` valid bytes, and `needed` is at most that.
        let region = unsafe { Region::borrowed(memory, needed) }?;
        let layout = Layout::of(&fixed).ok_or(NodeError::NotANode)?;
        // SAFETY: the layout's table is within the memory, which lives as long as the node.
        let reserve =
            unsafe { Table::attach_in(layout.table(region.base()), layout.table_bytes()) }?;
        Node::over(region, layout, &fixed, reserve)
    }

    fn make(
        name: &str,
        policy: &Policy,
        options: &Options,
        memory: impl FnOnce(usize) -> Result<Region, table::TableError>,
    ) -> Result<Node, NodeError> {
        let terms = Terms::new(policy, options)?;
        let (own, reserves) = (reserve_options(options), reserves(&terms)?);
        let layout = Layout::new(options.capacity, Table::bytes_for(&own, &reserves)?)?;
        let fixed = Fixed::new(name, &terms, &layout, random_u64()?).ok_or(TermsError::Name)?;
        let region = memory(usize::try_from(layout.bytes).map_err(|_| TermsError::Capacity)?)?;
        // SAFETY: the layout's table is within the memory, which lives as long as the node and is
        // zeroed.
        let reserve = unsafe {
            let at = layout.table(region.base());
            Table::init_in_zeroed(at, layout.table_bytes(), &own, &reserves)
        }?;
        // SAFETY: the memory is zeroed, longer than a header and aligned, and no other node uses it
        // yet.
        if let Some(header) = unsafe { region.base().cast::<Header>().as_ptr().as_mut() } {
            header.begin(&fixed);
        }
        Node::over(region, layout, &fixed, reserve)
    }

    fn over(
        memory: Region,
        layout: Layout,
        fixed: &Fixed,
        reserve: Table,
    ) -> Result<Node, NodeError> {
        let fallback = [Fallback::Share, Fallback::Deny, Fallback::Allow]
            .into_iter()
            .find(|r| *r as u64 == fixed.terms.fallback);
        Ok(Node {
            memory,
            layout,
            own: fixed.terms,
            fallback: fallback.ok_or(NodeError::NotANode)?,
            reserve,
            secrets: RapidSecrets::seed(fixed.seed),
        })
    }
}

fn reserves(terms: &Terms) -> Result<[Policy; 2], TermsError> {
    let reserve = terms.reserve()?;
    Ok([reserve, reserve])
}

fn reserve_options(options: &Options) -> table::Options {
    table::Options {
        // The bound counts each key's overdraft once. If the table evicted a key with a debt, that
        // key could overdraw a second time.
        on_full: table::OnFull::Deny,
        clock: Source::Tsc,
        huge_pages: false,
        ..table::Options::new(options.capacity)
    }
}
