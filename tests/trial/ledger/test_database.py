"""Whatever happens to the database: one kind of error, a sentence, nothing half-written, and back to work after it."""

import sqlite3
import threading
from urllib.parse import quote

import pytest
from sqlalchemy import create_engine, text

from kerneltrail.errors import LedgerError, NotRecorded
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.ledger.database import Database, url_of
from kerneltrail.trial.ledger.verify import verify
from trial.ledger.examples import decision, put


@pytest.fixture
def file(tmp_path):
    return tmp_path / "ledger.db"


class TestSQLite:
    def test_commits_reach_the_disk_and_readers_do_not_wait(self, file):
        with Ledger(file, "walking") as ledger:
            put(ledger, decision())
            with ledger.database.reading() as connection:
                settings = [
                    connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")
                ]
            assert settings == ["wal", 2]  # 2 is FULL
            reader = ledger.entries()
            next(reader)
            assert put(ledger, decision(index=2)).new
            reader.close()

    def test_a_full_disk(self, file):
        with Ledger(file, "walking") as ledger:
            put(ledger, decision())
            with ledger.database.reading() as connection:  # the pool has one connection, so that the limit is for all
                used = connection.exec_driver_sql("PRAGMA page_count").scalar()
                connection.exec_driver_sql(f"PRAGMA max_page_count = {used + 2}")
            with pytest.raises(
                NotRecorded, match=r"ledger\.db has no room left: its disk is full .*; nothing was recorded"
            ):
                put(ledger, decision(index=2), response=b"x" * 100_000)
            with ledger.database.reading() as connection:
                connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
            assert put(ledger, decision(index=2), response=b"x" * 100_000).entry.sequence == 2
            assert verify(ledger).sound

    def test_a_lock_that_somebody_else_keeps(self, file):
        with Ledger(file, "walking", patience=0.1) as ledger:
            put(ledger, decision())
            other = sqlite3.connect(file, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(NotRecorded, match="is locked by another writer for too long"):
                put(ledger, decision(index=2))
            assert len(list(ledger.entries())) == 1  # reading goes on
            other.execute("ROLLBACK")
            other.close()
            assert put(ledger, decision(index=2)).entry.sequence == 2

    def test_a_database_that_can_only_be_read(self, file):
        with Ledger(file, "walking") as ledger:
            put(ledger, decision())
        with Ledger(f"sqlite:///file:{quote(str(file))}?mode=ro&uri=true", "walking") as ledger:
            assert len(list(ledger.entries())) == 1
            with pytest.raises(NotRecorded, match="can only be read"):
                put(ledger, decision(index=2))

    def test_a_file_that_is_no_database(self, file):
        file.write_bytes(b"something else entirely, and long enough to be looked at" * 100)
        with Ledger(file, "walking") as ledger:
            with pytest.raises(NotRecorded, match="is damaged, or is no database"):
                put(ledger, decision())
            with pytest.raises(LedgerError, match="the ledger cannot be read"):
                list(ledger.entries())
        assert file.read_bytes().startswith(b"something else")

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_text("x")
        with Ledger(tmp_path / "file" / "ledger.db", "walking") as ledger, pytest.raises(NotRecorded, match="folder"):
            put(ledger, decision())

    def test_folders_on_the_way_are_made(self, tmp_path):
        with Ledger(tmp_path / "a" / "b" / "ledger.db", "walking") as ledger:
            assert put(ledger, decision()).new


class TestPostgreSQL:
    def test_a_server_that_is_not_there(self, tmp_path):
        address = f"postgresql://ann:secret@/study?host={quote(str(tmp_path))}"
        with Ledger(address, "walking") as ledger:
            with pytest.raises(NotRecorded, match=r"postgresql://ann:.*/study cannot be reached") as told:
                put(ledger, decision())
            assert "secret" not in str(told.value)

    def test_one_that_went_away_is_found_again(self, postgres_url):
        name = "kt_comes_and_goes"
        admin = create_engine(postgres_url, isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
            try:
                with Ledger(postgres_url.set(database=name).render_as_string(hide_password=False), "walking") as ledger:
                    put(ledger, decision())
                    connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
                    ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
                    connection.execute(text(ended))
                    with pytest.raises(NotRecorded, match=r"cannot be reached|refused"):
                        put(ledger, decision(index=2))
                    with pytest.raises(LedgerError, match="the ledger cannot be read"):
                        ledger.head()
                    connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true"))
                    assert put(ledger, decision(index=2)).entry.sequence == 2
                    # A connection that breaks in the middle of a transaction leaves nothing of it.
                    with pytest.raises(NotRecorded, match="cannot be reached"), ledger.transaction() as writer:  # noqa: PT012
                        put(writer, decision(index=3))
                        connection.execute(text(ended))
                        put(writer, decision(index=4))
                    assert put(ledger, decision(index=3)).entry.sequence == 3
                    assert verify(ledger).sound
            finally:
                connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        admin.dispose()

    def test_a_lock_that_somebody_else_keeps(self, postgresql):
        with Ledger(postgresql, "walking", patience=0.1) as ledger, Ledger(postgresql, "walking") as other:
            put(ledger, decision())
            with other.transaction() as writer:
                with pytest.raises(NotRecorded, match="is locked by another writer for too long"):
                    put(ledger, decision(index=2))
                put(writer, decision(index=3))
            assert put(ledger, decision(index=2)).entry.sequence == 3

    def test_a_database_that_can_only_be_read(self, postgresql):
        with Ledger(postgresql, "walking") as ledger:
            put(ledger, decision())
        address = url_of(postgresql)
        options = address.query["options"] + " -cdefault_transaction_read_only=on"
        address = address.update_query_dict({"options": options}).render_as_string(hide_password=False)
        with Ledger(address, "walking") as ledger:
            assert len(list(ledger.entries())) == 1
            with pytest.raises(NotRecorded, match="can only be read"):
                put(ledger, decision(index=2))


def test_an_error_of_the_caller_leaves_nothing_and_stays_what_it_is(ledger):
    put(ledger, decision())
    with pytest.raises(OSError, match="mine"), ledger.transaction() as writer:  # noqa: PT012
        put(writer, decision(index=2))
        raise OSError("mine")
    assert put(ledger, decision(index=3)).entry.sequence == 2


def test_threads_share_a_ledger(ledger):
    put(ledger, decision(index=0))
    workers = [threading.Thread(target=put, args=(ledger, decision(index=index))) for index in range(1, 9)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(entry.payload["index"] for entry in ledger.entries()) == list(range(9))
    assert verify(ledger).sound


@pytest.mark.parametrize("address", ["postgres://ann@host/study", "postgresql://ann@host/study"])
def test_postgresql_is_reached_with_psycopg(address):
    database = Database(address)
    assert database.url.drivername == "postgresql+psycopg"
    assert database.shown == "postgresql://ann@host/study"
