//! The tables of `dre`, as far as they are read.

use super::super::source::SourceTable;

pub(super) const BOOKS: SourceTable = SourceTable {
    spare: &[
        "authors_json",
        "publisher",
        "published_date",
        "description",
        "cover_url",
        "links_json",
        "source",
        "last_delivered_at",
    ],
    ..table("books", &["isbn13", "title", "first_seen_at", "last_seen_at"])
};
pub(super) const DELIVERIES: SourceTable =
    table("deliveries", &["id", "job_name", "delivered_at", "isbn13_list_json"]);
pub(super) const DELIVERY_ITEMS: SourceTable =
    table("delivery_items", &["delivery_id", "job_name", "isbn13", "delivered_at"]);
pub(super) const JOB_STATE: SourceTable =
    SourceTable { spare: &["last_success_at", "last_run_at"], ..table("job_state", &["job_name"]) };
pub(super) const API_USAGE: SourceTable = table("api_usage", &["date", "provider", "count"]);
pub(super) const PROMPTS: SourceTable = table("prompts", &["id", "isbn13", "prompt_text", "created_at"]);
pub(super) const PROMPT_TOKENS: SourceTable =
    table("prompt_tokens", &["token", "prompt_id", "expires_at", "created_at"]);
pub(super) const COLLECT_CURSOR: SourceTable = table(
    "collect_cursor",
    &["job_name", "query_set_hash", "start_index", "is_exhausted", "last_updated_at"],
);

const fn table(name: &'static str, needed: &'static [&'static str]) -> SourceTable {
    SourceTable { name, needed, spare: &[], also: &[] }
}
