"""The durable record: conversations and their messages in SQL, archived requests, the audit trail.

    with open_store(load_store_config(os.environ)) as store: ...

Only this package and checkpoint.archive know SQLAlchemy; importing `checkpoint` alone loads neither.
"""
