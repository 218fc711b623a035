//! Making nodes, and coming to one that is there.

use super::layout::{Fixed, Header, Layout};
use super::node::Node;
use super::terms::{Options, Rescue, Terms, TermsError};
use super::NodeError;
use crate::clock::Source;
use crate::policy::Policy;
use crate::table::region::{random_u64, Region};
use crate::table::{self, Table};
use core::ptr::NonNull;
use rapidhash::v3::RapidSecrets;

impl Node {
    /// The bytes that a node takes.
    pub fn bytes_for(policy: &Policy, options: &Options) -> Result<u64, NodeError> {
        let terms = Terms::new(policy, options)?;
        Ok(Layout::new(options.capacity, Table::bytes_for(&reserve_options(options), &reserves(policy, &terms)?)?)?
            .bytes)
    }

    /// A node of this process alone.
    pub fn private(name: &str, policy: &Policy, options: &Options) -> Result<Node, NodeError> {
        Node::make(name, policy, options, Region::private)
    }

    /// A node that processes forked later share.
    pub fn shared(name: &str, policy: &Policy, options: &Options) -> Result<Node, NodeError> {
        Node::make(name, policy, options, Region::shared)
    }

    /// A new node in the caller's memory, of which it takes [`Node::bytes_for`] bytes.
    ///
    /// # Safety
    /// `memory` is valid for reads and writes of `length` bytes as long as the node lives, and is touched by nobody but nodes.
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
            // SAFETY: by the caller's promise.
            let region = unsafe { Region::borrowed(memory, needed) }?;
            // SAFETY: `needed` of the caller's bytes, which nobody else looks at before the node is made.
            unsafe { memory.as_ptr().write_bytes(0, needed) };
            Ok(region)
        })
    }

    /// The node that is in the caller's memory, which another process may have made.
    ///
    /// # Safety
    /// As [`Node::init_in`].
    pub unsafe fn attach_in(memory: NonNull<u8>, length: usize) -> Result<Node, NodeError> {
        if length < Layout::RING_AT {
            return Err(NodeError::NotANode);
        }
        // Also says whether it is aligned.
        // SAFETY: by the caller's promise.
        unsafe { Region::borrowed(memory, Layout::RING_AT) }?;
        // SAFETY: the header's bytes are within `length`, and aligned; what others change of it is atomic.
        let header = unsafe { memory.cast::<Header>().as_ref() };
        let fixed = header.inspect().ok_or(NodeError::NotANode)?;
        let needed = usize::try_from(fixed.bytes).map_err(|_| NodeError::NotANode)?;
        if length < needed {
            return Err(NodeError::NotANode);
        }
        // SAFETY: by the caller's promise.
        let region = unsafe { Region::borrowed(memory, needed) }?;
        let layout = Layout::of(&fixed).ok_or(NodeError::NotANode)?;
        // SAFETY: the layout's table is within the memory, which lives as long as the node.
        let reserve = unsafe { Table::attach_in(layout.table(region.base()), layout.table_bytes()) }?;
        Node::over(region, layout, &fixed, reserve)
    }

    fn make(
        name: &str,
        policy: &Policy,
        options: &Options,
        memory: impl FnOnce(usize) -> Result<Region, table::TableError>,
    ) -> Result<Node, NodeError> {
        let terms = Terms::new(policy, options)?;
        let (own, reserves) = (reserve_options(options), reserves(policy, &terms)?);
        let layout = Layout::new(options.capacity, Table::bytes_for(&own, &reserves)?)?;
        let fixed = Fixed::new(name, &terms, &layout, random_u64()?).ok_or(TermsError::Name)?;
        let region = memory(usize::try_from(layout.bytes).map_err(|_| TermsError::Capacity)?)?;
        // SAFETY: the layout's table is within the memory, which lives as long as the node.
        let reserve = unsafe { Table::init_in(layout.table(region.base()), layout.table_bytes(), &own, &reserves) }?;
        // SAFETY: fresh zeroed memory, longer than a header, which nobody else sees yet.
        if let Some(header) = unsafe { region.base().cast::<Header>().as_ptr().as_mut() } {
            header.begin(&fixed);
        }
        let node = Node::over(region, layout, &fixed, reserve)?;
        node.ring().begin();
        Ok(node)
    }

    fn over(memory: Region, layout: Layout, fixed: &Fixed, reserve: Table) -> Result<Node, NodeError> {
        let rescue = [Rescue::Share, Rescue::Deny, Rescue::Allow].into_iter().find(|r| *r as u64 == fixed.terms.rescue);
        Ok(Node {
            memory,
            layout,
            terms: fixed.terms,
            rescue: rescue.ok_or(NodeError::NotANode)?,
            reserve,
            secrets: RapidSecrets::seed(fixed.seed),
        })
    }
}

fn reserves(policy: &Policy, terms: &Terms) -> Result<[Policy; 2], TermsError> {
    let reserve = terms.reserve(policy)?;
    Ok([reserve, reserve])
}

fn reserve_options(options: &Options) -> table::Options {
    table::Options {
        // A debtor that is forgotten would have its overdraft twice, and the bound counts it once.
        on_full: table::OnFull::Deny,
        clock: Source::Tsc,
        huge_pages: false,
        ..table::Options::new(options.capacity)
    }
}
