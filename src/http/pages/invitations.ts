/**
 * Invitations, as the page shows them to the person who has the link. The link's code is all that she needs: it is a
 * secret of 256 bits, works once, and comes in a body, which no log has.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { HttpRouter, HttpServerResponse } from "effect/http";
import { tokenHash } from "../../domain/ids.ts";
import { withAudit, recordRefusedEntry } from "../../services/audit.ts";
import { newAccessToken, newUuid } from "../../services/entropy.ts";
import { BrowserSessions } from "../../store/ports/people/browser-sessions.ts";
import { People } from "../../store/ports/people/people.ts";
import { signedInActor } from "../callers/acting.ts";
import { NotFound } from "../api/errors.ts";
import { NAME_MAX } from "../api/people.ts";
import { nameText } from "../api/schemas.ts";
import { instant } from "../steps/wire.ts";
import { ownPageBody } from "../callers/own-page.ts";
import { withErrors, withCookie } from "./answer.ts";
import { newSession } from "./dashboard-sessions.ts";

const Code = Schema.String.check(Schema.isMaxLength(200));
const Look = Schema.Struct({ code: Code });
const Accept = Schema.Struct({ code: Code, name: nameText(NAME_MAX) });

const TEXT = { field: "code", words: "must be text" };
const NAME = { field: "name", words: `must be one line of 1 to ${NAME_MAX} characters` };

const invalid = Effect.gen(function* () {
  yield* recordRefusedEntry({ action: "invitation.accepted" });
  return yield* new NotFound({
    error: "This invitation is used, revoked or expired. Ask the person who sent it for another one.",
    code: "invitation_invalid",
  });
});

/** What the invitation grants. Changes nothing. */
const look = Effect.gen(function* () {
  const { code } = yield* ownPageBody(Look, TEXT);
  const invitation = yield* (yield* People).openInvitation(tokenHash(code), yield* Clock.currentTimeMillis);
  if (invitation === null) return yield* invalid;
  const { name, role, account, invitedBy, projects, expiresAt } = invitation;
  return HttpServerResponse.jsonUnsafe({
    name,
    role,
    account,
    invited_by: invitedBy,
    projects,
    expires_at: instant(expiresAt),
  });
});

/** Makes the person and signs her in. The answer has her first token, which is not shown again. */
const accept = Effect.gen(function* () {
  const { code, name } = yield* ownPageBody(Accept, NAME);
  const token = yield* newAccessToken;
  const hash = tokenHash(token);
  const [people, browsers] = [yield* People, yield* BrowserSessions];
  const { row, session } = yield* newSession;
  const newcomer = {
    hash: tokenHash(code),
    userId: yield* newUuid,
    name,
    tokenId: yield* newUuid,
    tokenHash: hash,
    now: yield* Clock.currentTimeMillis,
  };
  // One transaction: she is in, and signed in, or the invitation is still open.
  const acceptance = Effect.tap(people.accept(newcomer), (newPerson) =>
    newPerson === null ? Effect.void : Effect.asVoid(browsers.open(hash, row)),
  );
  const person = yield* acceptance.pipe(
    withAudit((newPerson) =>
      newPerson === null
        ? null
        : {
            action: "invitation.accepted",
            target: newPerson.id,
            actor: signedInActor(newPerson, row.id),
            changes: { by: "token", role: newPerson.role },
          },
    ),
  );
  if (person === null) return yield* invalid;
  const user = { id: person.id, name: person.name };
  const body = { user, csrf: session.csrf, token };
  const response = HttpServerResponse.jsonUnsafe(body, {
    status: 201,
    headers: { "cache-control": "no-store" },
  });
  return yield* withCookie(response, session);
});

export const invitationRoutes = [
  HttpRouter.route("POST", "/dashboard/invitations/look", withErrors(look)),
  HttpRouter.route("POST", "/dashboard/invitations/accept", withErrors(accept)),
];
