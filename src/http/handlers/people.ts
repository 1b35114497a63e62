/** Handlers of api/people.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { Actors } from "../../services/actors.ts";
import { deliver } from "../../actors/delivery.ts";
import { tokenHash } from "../../domain/ids.ts";
import type { AccountRole, ProjectRole } from "../../domain/person/role.ts";
import { withAudit, auditedChange, unlessSame } from "../../services/audit.ts";
import { forgetLeft } from "../../services/connectors/left-credentials.ts";
import { newPassword, newUuid } from "../../services/entropy.ts";
import { Accounts } from "../../store/ports/people/accounts.ts";
import { Identity } from "../../store/ports/people/identity.ts";
import { People, type Member, type Person } from "../../store/ports/people/people.ts";
import { Projects } from "../../store/ports/projects/projects.ts";
import { Caller } from "../api/access.ts";
import { Conflict, notFound, Unprocessable } from "../api/errors.ts";
import { Addresses } from "../limits.ts";
import { withApiErrors, requireProject } from "../steps/answers.ts";
import { pageRequest, wireForm } from "../steps/wire.ts";
import { InvitationWire, PeopleGroup, PersonWire } from "../api/people.ts";
import { Platform } from "../api/platform.ts";

/** How long an invitation can be accepted. */
const INVITATION_LIFE_MS = 7 * 24 * 60 * 60 * 1000;

const personForm = wireForm(PersonWire);
const invitationForm = wireForm(InvitationWire);
const showMember = ({ person, role, own }: Member) => ({ user: personForm(person), role, own_role: own });

/** The link that the page opens. The code is in the fragment, which no server's log has. */
const invitationLink = (publicUrl: string, code: string): string => `${publicUrl}/#/join/${code}`;

const lastOwner = () =>
  new Conflict({
    error: "This is the account's last owner. Make another person an owner first.",
    code: "last_owner",
  });

const personAnswer = (person: Person | "last_owner" | null) => {
  if (person === null) return Effect.fail(notFound("person"));
  return person === "last_owner" ? Effect.fail(lastOwner()) : Effect.succeed(personForm(person));
};

/** The row of a change of a person, unless it was refused. */
const stateChanged =
  (action: "person.deactivated" | "person.reactivated") => (person: Person | "last_owner" | null) =>
    person === null || person === "last_owner"
      ? null
      : { action, target: person.id, changes: { name: person.name } };

/** Ends the person's sessions immediately. A session that misses this is stopped by the duty `people` (duties/people.ts). */
const deactivate = Effect.fnUntraced(function* (id: string) {
  const people = yield* People;
  const { accountId } = yield* Caller;
  const now = yield* Clock.currentTimeMillis;
  const row = stateChanged("person.deactivated");
  const deactivation = people.deactivate(accountId, id, now).pipe(
    // One who was deactivated before stays as she is.
    withAudit((person) => (typeof person === "object" && person?.deactivatedAt !== now ? null : row(person))),
  );
  const answer = yield* personAnswer(yield* deactivation);
  const actors = yield* Actors;
  yield* Effect.forEach(
    yield* people.unwantedSessions,
    (session) => deliver(actors.session(session.id, { type: "user.deactivated" })),
    { concurrency: 8, discard: true },
  );
  yield* forgetLeft;
  return answer;
});

interface Invite {
  readonly name: string;
  readonly role?: AccountRole;
  readonly projects?: readonly { readonly project_id: string; readonly role: ProjectRole }[];
}

const invite = Effect.fnUntraced(function* ({ name, role = "member", projects = [] }: Invite) {
  const caller = yield* Caller;
  const all = yield* Projects;
  yield* Effect.forEach(projects, ({ project_id }) =>
    Effect.flatMap(all.get(project_id), (project) =>
      project?.accountId === caller.accountId
        ? Effect.void
        : new Unprocessable({
            error: `The account has no project ${project_id}.`,
            code: "unknown_project",
            details: { project_id },
          }),
    ),
  );
  const code = yield* newPassword;
  const now = yield* Clock.currentTimeMillis;
  const invitation = yield* (yield* People)
    .invite({
      id: yield* newUuid,
      accountId: caller.accountId,
      hash: tokenHash(code),
      name,
      role,
      projects: projects.map((grant) => ({ projectId: grant.project_id, role: grant.role })),
      createdBy: caller.user.id,
      expiresAt: Math.min(now + INVITATION_LIFE_MS, caller.reachEndsAt ?? Infinity),
      now,
    })
    .pipe(
      withAudit(({ id }) => ({
        action: "invitation.created",
        target: id,
        changes: { name, role, projects: projects.map((each) => `${each.project_id} ${each.role}`) },
      })),
    );
  return { ...invitationForm(invitation), url: invitationLink((yield* Addresses).publicUrl, code) };
});

const grant = Effect.fnUntraced(function* (
  { pid, id }: { readonly pid: string; readonly id: string },
  role: ProjectRole | null,
) {
  yield* requireProject(yield* Caller, pid);
  const now = yield* Clock.currentTimeMillis;
  const people = yield* People;
  const action = role === null ? "member.removed" : "member.set";
  const person = yield* people.grant({ projectId: pid, userId: id, role, now }).pipe(
    auditedChange({
      target: id,
      read: Effect.map(people.ownRole(pid, id), (own) => ({ role: own })),
      say: (changes) => unlessSame({ action, target: id, changes }),
    }),
  );
  if (person === null) return yield* notFound("person");
});

const renameAccount = Effect.fnUntraced(function* (name: string) {
  const { accountId: id } = yield* Caller;
  const { account, rename } = yield* Identity;
  yield* rename(id, name).pipe(
    auditedChange({
      target: id,
      read: Effect.map(account(id), (one) => one && { name: one.name }),
      say: (changes) => unlessSame({ action: "account.updated", target: id, changes }),
    }),
  );
});

export const peopleHandlers = HttpApiBuilder.group(Platform.add(PeopleGroup), "people", (handlers) =>
  handlers
    .handle("list", ({ query }) =>
      withApiErrors(
        Effect.gen(function* () {
          const page = yield* (yield* People).list((yield* Caller).accountId, pageRequest(query));
          return { people: page.items.map(personForm), next_cursor: page.nextCursor };
        }),
      ),
    )
    .handle("update", ({ params, payload }) =>
      withApiErrors(
        Effect.gen(function* () {
          const { accountId } = yield* Caller;
          const { id } = params;
          const { user } = yield* Accounts;
          const update = (yield* People).update(accountId, id, payload).pipe(
            auditedChange({
              target: id,
              read: Effect.map(user(id), (one) => one && { name: one.name, role: one.role }),
              say: (changes) => unlessSame({ action: "person.updated", target: id, changes }),
            }),
          );
          return yield* personAnswer(yield* update);
        }),
      ),
    )
    .handle("updateAccount", ({ payload }) => withApiErrors(renameAccount(payload.name)))
    .handle("deactivate", ({ params }) => withApiErrors(deactivate(params.id)))
    .handle("reactivate", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          const reactivation = (yield* People).reactivate((yield* Caller).accountId, params.id);
          return yield* personAnswer(yield* reactivation.pipe(withAudit(stateChanged("person.reactivated"))));
        }),
      ),
    )
    .handle("invitations", ({ query }) =>
      withApiErrors(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis;
          const { accountId } = yield* Caller;
          const page = yield* (yield* People).invitations(accountId, { ...pageRequest(query), now });
          return { invitations: page.items.map(invitationForm), next_cursor: page.nextCursor };
        }),
      ),
    )
    .handle("invite", ({ payload }) => withApiErrors(invite(payload)))
    .handle("revoke", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis;
          const { accountId } = yield* Caller;
          const revocation = (yield* People).revokeInvitation(accountId, params.id, now);
          const row = { action: "invitation.revoked", target: params.id } as const;
          if (!(yield* revocation.pipe(withAudit((isRevoked) => (isRevoked ? row : null)))))
            return yield* notFound("invitation");
        }),
      ),
    )
    .handle("members", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          yield* requireProject(yield* Caller, params.pid);
          return { members: (yield* (yield* People).members(params.pid)).map(showMember) };
        }),
      ),
    )
    .handle("grant", ({ params, payload }) => withApiErrors(grant(params, payload.role)))
    .handle("revokeGrant", ({ params }) => withApiErrors(grant(params, null))),
);
