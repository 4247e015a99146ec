//! Listings filtered by what no index covers: rows are read along their key, up to a limit.

use crate::db;

/// Whether a row is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    Yes,
    /// No, but later ones may be.
    No,
    /// No, and no later one is.
    End,
}

impl From<bool> for Fit {
    fn from(fits: bool) -> Self {
        if fits { Fit::Yes } else { Fit::No }
    }
}

/// The limits of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// Rows of a page.
    pub shown: usize,
    /// Rows to read before the reader has to ask for more.
    pub searched: usize,
}

impl Walk {
    /// The rows that fit, and the key to continue from if there may be more.
    ///
    /// `page` loads so many rows after a key; `None` means from the beginning.
    pub fn list<T, K>(
        self,
        after: Option<K>,
        mut page: impl FnMut(Option<&K>, usize) -> db::Result<Vec<T>>,
        key: impl Fn(&T) -> K,
        fit: impl Fn(&T) -> Fit,
    ) -> db::Result<(Vec<T>, Option<K>)> {
        let (mut found, mut searched, mut last) = (Vec::new(), 0, after);
        loop {
            let rows = page(last.as_ref(), self.shown + 1)?;
            let is_end = rows.len() <= self.shown;
            for row in rows.into_iter().take(self.shown) {
                if found.len() == self.shown || searched == self.searched {
                    return Ok((found, last));
                }
                searched += 1;
                let fit = fit(&row);
                if fit == Fit::End {
                    return Ok((found, None));
                }
                last = Some(key(&row));
                if fit == Fit::Yes {
                    found.push(row);
                }
            }
            if is_end {
                return Ok((found, None));
            }
            if found.len() == self.shown {
                return Ok((found, last));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALK: Walk = Walk { shown: 3, searched: 10 };

    fn walk(after: Option<i32>, fit: impl Fn(&i32) -> Fit) -> (Vec<i32>, Option<i32>) {
        let page = |last: Option<&i32>, limit: usize| {
            let first = last.map_or(1, |last| last + 1);
            Ok((first..=20).take(limit).collect())
        };
        WALK.list(after, page, |row| *row, fit).unwrap()
    }

    #[test]
    fn every_row_that_fits_is_shown_once_page_by_page() {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let (found, next) = walk(after, |row| (row % 2 == 0).into());
            assert!(found.len() <= WALK.shown);
            all.extend(found);
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(all, [2, 4, 6, 8, 10, 12, 14, 16, 18, 20]);
        assert_eq!(walk(None, |_| Fit::Yes), (vec![1, 2, 3], Some(3)));
        assert_eq!(walk(Some(17), |_| Fit::Yes), (vec![18, 19, 20], None));
    }

    #[test]
    fn a_search_for_nothing_stops_and_can_go_on() {
        assert_eq!(walk(None, |_| Fit::No), (vec![], Some(10)));
        assert_eq!(walk(Some(10), |_| Fit::No), (vec![], None));
        assert_eq!(walk(None, |row| if *row < 3 { Fit::Yes } else { Fit::End }), (vec![1, 2], None));
    }
}
