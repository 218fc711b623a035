//! The charge of a request whose cost its answer tells.

use crate::layers::Layers;
use crate::options::Options;
use http::Response;
use std::fmt;
use std::sync::Arc;
use tollbar::table::{PolicyId, Table};

/// A charge that waits for the answer.
pub(crate) struct After {
    pub(crate) table: Arc<Table>,
    pub(crate) options: Options,
    pub(crate) layers: Layers,
    /// The policies and the keys, with their places in `layers`.
    pub(crate) limits: Vec<(PolicyId, Vec<u8>, Option<usize>)>,
}

impl After {
    /// Charges what the layer's function says about the answer.
    pub(crate) fn charge<B>(self, response: Response<B>) -> Response<B> {
        let Some(charge) = &self.options.charge else { return response };
        let (parts, body) = response.into_parts();
        let head = Response::from_parts(parts, ());
        let cost = charge(&head);
        let now = self.options.now();
        for (policy, key, place) in self.limits.iter().filter(|_| cost != 0) {
            // An error shows itself to the next request.
            let _ = self.table.try_charge(*policy, key, now, cost);
            if let Some(place) = place {
                let peek = |cost| self.table.peek_uncounted(*policy, key, now, cost);
                self.layers.read_again(*place, peek);
            }
        }
        Response::from_parts(head.into_parts().0, body)
    }
}

impl fmt::Debug for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("After").field("limits", &self.limits).finish_non_exhaustive()
    }
}
