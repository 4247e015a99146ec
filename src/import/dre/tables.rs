//! The tables and columns of `dre` that are imported.

use super::super::source::{SourceColumn, SourceTable, needed, spare};

pub(super) const BOOKS: SourceTable = SourceTable {
    name: "books",
    columns: &[
        needed("isbn13"),
        needed("title"),
        spare("authors_json", &[]),
        spare("publisher", &[]),
        spare("published_date", &[]),
        spare("description", &[]),
        spare("cover_url", &[]),
        spare("links_json", &[]),
        spare("source", &[]),
        needed("first_seen_at"),
        needed("last_seen_at"),
        spare("last_delivered_at", &[]),
    ],
};
pub(super) const DELIVERIES: SourceTable = SourceTable {
    name: "deliveries",
    columns: &[needed("id"), needed("job_name"), needed("delivered_at"), needed("isbn13_list_json")],
};
pub(super) const DELIVERY_ITEMS: SourceTable = SourceTable {
    name: "delivery_items",
    columns: &[needed("delivery_id"), needed("job_name"), needed("isbn13"), needed("delivered_at")],
};
pub(super) const JOB_STATE: SourceTable = SourceTable {
    name: "job_state",
    columns: &[needed("job_name"), spare("last_success_at", &[]), spare("last_run_at", &[])],
};
pub(super) const API_USAGE: SourceTable =
    SourceTable { name: "api_usage", columns: &[needed("date"), needed("provider"), needed("count")] };
pub(super) const PROMPTS: SourceTable = SourceTable {
    name: "prompts",
    columns: &[needed("id"), needed("isbn13"), needed("prompt_text"), needed("created_at")],
};
pub(super) const PROMPT_TOKENS: SourceTable = SourceTable { name: "prompt_tokens", columns: TOKEN_COLUMNS };
const TOKEN_COLUMNS: &[SourceColumn] =
    &[needed("token"), needed("prompt_id"), needed("expires_at"), needed("created_at")];
pub(super) const COLLECT_CURSOR: SourceTable = SourceTable {
    name: "collect_cursor",
    columns: &[
        needed("job_name"),
        needed("query_set_hash"),
        needed("start_index"),
        needed("is_exhausted"),
        needed("last_updated_at"),
    ],
};
