//! The SQL of books, deliveries, prompts and tokens.

mod books;
mod covers;
mod delivery;
mod export;
mod import;
mod token;
mod view;

pub use books::{add_job_book, find_book, has_book, has_books, mark_unwanted, put_book};
pub use covers::{Place, SeenBook, list_books_behind};
pub use delivery::{
    BookPause, QueuedDigest, add_digest, count_on_their_way, count_paused, count_undelivered, count_waiting,
    find_digest, has_unsent_digest, last_digest_at, list_pauses, list_repeatable, list_undelivered,
    mark_delivered, mark_refused, refused_at, reset_deliveries,
};
pub use export::{DeliveryRow, list_books_after, list_deliveries_after};
pub use import::{
    ImportedBook, add_book, add_delivery, add_delivery_item, add_known_token, add_prompt, add_waiting,
    is_delivered, mark_sent,
};
pub use token::{
    TokenRow, TokenTarget, add_token, find_by_token, find_prompt, list_tokens, list_tokens_by_prefix,
    prune_tokens, put_prompt, revoke_token,
};
pub use view::{
    BookQuery, BookRow, JobMail, SentDigest, count_books, count_delivered, list_books,
    list_deliveries_of_book, list_jobs_of_book, list_sent_digests, list_unsent_digests_of_book,
};

crate::migration!(2, "books", "../../../migrations/0002_books.sql");
