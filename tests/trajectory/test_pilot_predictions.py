"""Pilot users followed as new ones."""

from kerneltrail.trajectory.pilot_predictions import MOST_USERS, predicted_batches, some_of

from . import small


def test_every_batch_is_predicted_from_those_before():
    model, user = small.small_model(), small.rows("ann")
    found = list(predicted_batches(model, user))
    assert [t for t, _, _ in found] == list(range(1, user.batches + 1))
    followed = model.new_user()
    for t, batch, ahead in found:
        assert batch == user.batch(t)
        assert (ahead.mean == followed.predict(batch.X).mean).all()
        followed.update(batch.X, batch.y)


def test_somebody_who_cannot_be_followed_is_followed_as_far_as_can_be(monkeypatch):
    model, user = small.small_model(), small.rows("ann")
    real, asked = type(model.new_user()).update, []

    def update(self, *args, **options):
        asked.append(1)
        if len(asked) == 2:
            raise ArithmeticError("no")
        return real(self, *args, **options)

    monkeypatch.setattr(type(model.new_user()), "update", update)
    assert [t for t, _, _ in predicted_batches(model, user)] == [1]


def test_users_are_taken_evenly_and_at_most_so_many():
    assert len(some_of(list(range(3 * MOST_USERS)))) == MOST_USERS
    assert some_of([1, 2, 3]) == [1, 2, 3]
    assert some_of([]) == []
