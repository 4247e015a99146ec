//! One connection to PostgreSQL: connecting, statements, and the conversion of values and errors.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{Format, IsNull, ToSql, Type};
use postgres::{Client, SimpleQueryMessage, Statement};

use super::unit::TxAccess;
use super::{Error, Result, Sql, Value, tls};
use stdx::time::Timestamp;

/// The start of a transaction; the same round trip returns its number and the server's time.
const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE";
const BEGIN_CLAIM: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// A move holds this lock until it is complete; queries after it see its result.
const WAIT_FOR_MOVE: &str = "LOCK TABLE db_move IN ROW SHARE MODE";
const NUMBER: &str = "pg_current_xact_id()::text";
const LEFT: &str =
    "(SELECT place FROM db_move WHERE role = 'left'), (SELECT at FROM db_move WHERE role = 'left')";
pub(super) const NOW: &str =
    "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')";

/// The address of a server and its TLS settings.
pub(super) struct Server {
    config: postgres::Config,
    connector: tokio_postgres_rustls::MakeRustlsConnect,
}

impl Server {
    pub(super) fn parse(url: &str) -> Result<Self> {
        let (url, root_certificate) = tls::split_parameters(url)?;
        let mut config: postgres::Config =
            url.parse().map_err(|error: postgres::Error| Error::BadAddress(with_cause(&error)))?;
        config.connect_timeout(Duration::from_secs(10));
        config.keepalives_idle(Duration::from_secs(60));
        config.tcp_user_timeout(Duration::from_secs(60));
        if config.get_application_name().is_none() {
            config.application_name("tsuzuki");
        }
        Ok(Self { config, connector: tls::connector(root_certificate.as_deref())? })
    }

    pub(super) fn connect(&self) -> Result<Session> {
        let client =
            self.config.connect(self.connector.clone()).map_err(|error| match Error::from(error) {
                Error::Statement(why) => Error::Unreachable(why),
                other => other,
            })?;
        let mut session = Session { client, statements: HashMap::new(), texts: HashMap::new() };
        // Plan for the actual values: a generic plan may sort a whole table in order to read one page of it.
        session.execute_text(
            "SET statement_timeout = '120s'; SET idle_in_transaction_session_timeout = '120s';
             SET plan_cache_mode = force_custom_plan",
        )?;
        Ok(session)
    }
}

/// One connection and its prepared statements.
pub(super) struct Session {
    client: Client,
    /// By the address of the static statement.
    statements: HashMap<usize, Statement>,
    /// By their text, for dynamic statements.
    texts: HashMap<String, Statement>,
}

/// Called with each row of a result.
pub(super) type EachRow<'a> = &'a mut dyn FnMut(&postgres::Row) -> Result<ControlFlow<()>>;

pub(super) struct Begun {
    /// The server's transaction number.
    pub(super) number: String,
    /// By the server's clock.
    pub(super) now: Timestamp,
    /// Where the data was moved to, and when.
    pub(super) left: Option<(String, String)>,
}

impl Session {
    pub(super) fn begin(&mut self, access: TxAccess) -> Result<Begun> {
        let text = match access {
            TxAccess::Write => format!("{BEGIN_WRITE}; {WAIT_FOR_MOVE}; SELECT {NUMBER}, {NOW}, {LEFT}"),
            TxAccess::Claim => format!("{BEGIN_CLAIM}; {WAIT_FOR_MOVE}; SELECT {NUMBER}, {NOW}, {LEFT}"),
            TxAccess::Read => format!("{BEGIN_READ}; SELECT '', {NOW}, NULL, NULL"),
        };
        let mut begun = Begun { number: String::new(), now: Timestamp::MIN, left: None };
        for message in self.client.simple_query(&text)? {
            if let SimpleQueryMessage::Row(row) = message {
                begun.left = row.get(2).zip(row.get(3)).map(|(to, at)| (to.to_owned(), at.to_owned()));
                begun.number = row.get(0).unwrap_or_default().to_owned();
                begun.now = row
                    .get(1)
                    .and_then(|text| text.parse().ok())
                    .ok_or_else(|| Error::Statement("the server does not return the time".into()))?;
            }
        }
        Ok(begun)
    }

    pub(super) fn rollback(&mut self) {
        // If the connection is gone, so is the transaction; the next BEGIN reports it.
        let _ = self.client.batch_execute("ROLLBACK");
    }

    pub(super) fn prepare(&mut self, sql: &'static Sql) -> Result<Statement> {
        let key = std::ptr::from_ref(sql).addr();
        if let Some(statement) = self.statements.get(&key) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql.render(super::Dialect::Postgres))?;
        self.statements.insert(key, statement.clone());
        Ok(statement)
    }

    pub(super) fn execute(&mut self, sql: &'static Sql, params: &[Value<'_>]) -> Result<u64> {
        let statement = self.prepare(sql)?;
        self.run(&statement, params)
    }

    /// Executes a dynamic text, prepared once per connection.
    pub(super) fn execute_dynamic(&mut self, text: &str, params: &[Value<'_>]) -> Result<u64> {
        let statement = self.prepare_dynamic(text)?;
        self.run(&statement, params)
    }

    fn run(&mut self, statement: &Statement, params: &[Value<'_>]) -> Result<u64> {
        let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|value| value as _).collect();
        Ok(self.client.execute(statement, &params)?)
    }

    /// Passes the rows to `each`, until it stops.
    pub(super) fn each(&mut self, sql: &'static Sql, params: &[Value<'_>], each: EachRow<'_>) -> Result<()> {
        let statement = self.prepare(sql)?;
        self.query(&statement, params, each)
    }

    /// The same for a dynamic text, prepared once per connection.
    pub(super) fn each_dynamic(&mut self, text: &str, params: &[Value<'_>], each: EachRow<'_>) -> Result<()> {
        let statement = self.prepare_dynamic(text)?;
        self.query(&statement, params, each)
    }

    fn query(&mut self, statement: &Statement, params: &[Value<'_>], each: EachRow<'_>) -> Result<()> {
        let params = params.iter().map(|value| value as &(dyn ToSql + Sync));
        let mut rows = self.client.query_raw(statement, params)?;
        while let Some(row) = rows.next()? {
            if each(&row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn prepare_dynamic(&mut self, text: &str) -> Result<Statement> {
        if let Some(statement) = self.texts.get(text) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(text)?;
        self.texts.insert(text.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(super) fn execute_text(&mut self, text: &str) -> Result<()> {
        Ok(self.client.batch_execute(text)?)
    }

    /// The first column of the first row of a dynamic query.
    pub(super) fn first_text(&mut self, text: &str) -> Result<Option<String>> {
        Ok(self
            .client
            .simple_query(text)?
            .into_iter()
            .find_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
                _ => None,
            })
            .flatten())
    }
}

pub(super) fn cell(row: &postgres::Row, index: usize) -> Result<Value<'_>> {
    let column = row.columns().get(index).ok_or_else(|| Error::Statement(format!("no column {index}")))?;
    let value = match *column.type_() {
        Type::INT8 => row.try_get::<_, Option<i64>>(index)?.map(Value::Int),
        Type::INT4 => row.try_get::<_, Option<i32>>(index)?.map(|value| Value::Int(value.into())),
        Type::BOOL => row.try_get::<_, Option<bool>>(index)?.map(|value| Value::Int(value.into())),
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(index)?.map(Value::Real),
        _ => row.try_get::<_, Option<&str>>(index)?.map(|text| Value::Text(text.into())),
    };
    Ok(value.unwrap_or(Value::Null))
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut bytes::BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(value) => match *kind {
                Type::INT8 => value.to_sql(kind, out),
                Type::INT4 => i32::try_from(*value)?.to_sql(kind, out),
                Type::INT2 => i16::try_from(*value)?.to_sql(kind, out),
                Type::FLOAT8 => (*value as f64).to_sql(kind, out),
                _ => Err(format!("a number where PostgreSQL wants {kind}").into()),
            },
            Value::Real(value) => value.to_sql(kind, out),
            Value::Text(value) => match *kind {
                Type::TEXT | Type::VARCHAR | Type::UNKNOWN | Type::BPCHAR | Type::NAME => {
                    value.as_ref().to_sql(kind, out)
                }
                _ => Err(format!("text where PostgreSQL wants {kind}").into()),
            },
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Binary
    }

    postgres::types::to_sql_checked!();
}

impl From<postgres::Error> for Error {
    fn from(error: postgres::Error) -> Self {
        let text = with_cause(&error);
        let Some(state) = error.code() else {
            let broken = error.is_closed()
                || std::error::Error::source(&error)
                    .is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
            return if broken { Error::Unreachable(text) } else { Error::Statement(text) };
        };
        match *state {
            SqlState::T_R_SERIALIZATION_FAILURE
            | SqlState::T_R_DEADLOCK_DETECTED
            | SqlState::LOCK_NOT_AVAILABLE => Error::Collided(text),
            SqlState::DISK_FULL => Error::Full(text),
            SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::INSUFFICIENT_PRIVILEGE => Error::ReadOnly(text),
            SqlState::ADMIN_SHUTDOWN
            | SqlState::CRASH_SHUTDOWN
            | SqlState::CANNOT_CONNECT_NOW
            | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
            | SqlState::TOO_MANY_CONNECTIONS => Error::Unreachable(text),
            _ if state.code().starts_with("23") => Error::Constraint(text),
            _ if state.code().starts_with("08") => Error::Unreachable(text),
            _ => Error::Statement(text),
        }
    }
}

/// The driver's own text is short ("db error"); the cause has the details.
fn with_cause(error: &postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(db), _) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

/// An address for people, without password and parameters.
pub(super) fn without_password(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(mut url) => {
            let _ = url.set_password(None);
            url.set_query(None);
            url.to_string()
        }
        Err(_) => "postgres://…".to_owned(),
    }
}
