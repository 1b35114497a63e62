/** Who was asked to review a change request. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { changeRequestMoved, reviewRequested } from "../ports/change-request-steps.ts";
import type { ChangeRequest } from "../ports/change-requests.ts";
import { type Asking, type Reviewer, Reviewers, REVIEWERS_MAX } from "../ports/reviewers.ts";
import { onSharedConnection } from "../../../store/postgres/connection/prepared.ts";
import { at, toStored } from "../../../store/postgres/connection/statement.ts";
import { EventLog } from "../../../store/postgres/events/event-log.ts";

/** Whether a reviewer said something since she was asked. `reviewer` names her row. */
export const hasSpoken = (reviewer: string): string => `EXISTS (SELECT FROM change_request_remarks AS remark
  WHERE remark.change_request_id = ${reviewer}.change_request_id AND remark.created_by = ${reviewer}.user_id
    AND remark.created_at >= ${reviewer}.asked_at)`;

export const layer = Layer.effect(
  Reviewers,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const events = yield* EventLog;
    const rows = (requestId: string) =>
      sql<Reviewer>`
        SELECT user_id AS "userId", users.name, asked_by AS "askedBy", asked_at AS "askedAt",
          ${sql.literal(hasSpoken("change_request_reviewers"))} AS "hasSpoken"
        FROM change_request_reviewers JOIN users ON users.id = user_id
        WHERE change_request_id = ${requestId} ORDER BY asked_at, user_id`.pipe(onSharedConnection);
    /** The row of the request is locked, so that concurrent reviewers are counted. */
    const ask = Effect.fnUntraced(function* (request: ChangeRequest, { userId, askedBy, askedAt }: Asking) {
      yield* sql`SELECT 1 FROM change_requests WHERE id = ${request.id} FOR UPDATE`;
      yield* sql`
        INSERT INTO change_request_reviewers (change_request_id, user_id, asked_by, asked_at)
        SELECT ${request.id}::uuid, ${userId}::uuid, ${askedBy}::uuid, ${at(askedAt)}::timestamptz
        WHERE (SELECT count(*) FROM change_request_reviewers
               WHERE change_request_id = ${request.id} AND user_id <> ${userId}) < ${REVIEWERS_MAX}
        ON CONFLICT ON CONSTRAINT change_request_reviewers_pkey
          DO UPDATE SET asked_by = excluded.asked_by, asked_at = excluded.asked_at`;
      const reviewer = (yield* rows(request.id)).find((row) => row.userId === userId);
      if (reviewer === undefined) return null;
      yield* events.append([reviewRequested(request, reviewer)]);
      return reviewer;
    });
    const withdraw = Effect.fnUntraced(function* (request: ChangeRequest, userId: string, now: number) {
      const removals = yield* sql`
        DELETE FROM change_request_reviewers
        WHERE change_request_id = ${request.id} AND user_id = ${userId} RETURNING user_id`;
      if (removals.length > 0) yield* events.append([changeRequestMoved(request, now)]);
      return removals.length > 0;
    });
    return {
      list: (requestId) => rows(requestId).pipe(toStored("reviewers.list")),
      ask: (request, reviewer) => sql.withTransaction(ask(request, reviewer)).pipe(toStored("reviewers.ask")),
      withdraw: (request, userId, now) =>
        sql.withTransaction(withdraw(request, userId, now)).pipe(toStored("reviewers.withdraw")),
    };
  }),
);
