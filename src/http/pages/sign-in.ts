/**
 * Signing in at a provider (api.md 3): the browser goes to the provider and comes back with a code. The session's cookie
 * stays strict: the callback sets it and sends the browser to the page, whose own requests carry it.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http";
import { tokenHash } from "../../domain/ids.ts";
import {
  returnPath,
  SIGN_IN_CAUSES,
  type ProviderId,
  type SignInCause,
} from "../../domain/person/sign-in.ts";
import { withAudit, recordRefusedEntry } from "../../services/audit.ts";
import { newPassword, newUuid } from "../../services/entropy.ts";
import {
  SignInProviders,
  type ProvidedPerson,
  type ProviderFault,
  type SignInProvider,
} from "../../sign-in/port.ts";
import {
  Identities,
  IDENTITIES_MAX,
  type Entry,
  type NewIdentity,
  type SignInResult,
} from "../../store/ports/people/identities.ts";
import { Operations } from "../../store/ports/operations.ts";
import { signedInActor } from "../callers/acting.ts";
import { Measures } from "../../telemetry/port.ts";
import { BadGateway, notFound } from "../api/errors.ts";
import { authenticator, forbidden } from "../callers/authorize.ts";
import { Addresses, Limits } from "../limits.ts";
import { isOwnNavigation, ownForm, ownPageBody } from "../callers/own-page.ts";
import { withErrors, withCookie } from "./answer.ts";
import { newSession } from "./dashboard-sessions.ts";
import { doorPage } from "./look.ts";
import { type Flow, browserFlow, withFlow, withoutFlow } from "./sign-in-flow.ts";
import { escapeHtml } from "../../ground/html.ts";

const provider = Effect.gen(function* () {
  const { params } = yield* HttpRouter.RouteContext;
  const match = (yield* SignInProviders).find(({ id }) => id === params["provider"]);
  return match ?? (yield* notFound("sign-in provider"));
});

const list = Effect.gen(function* () {
  const providers = (yield* SignInProviders).map(({ id, label }) => ({ id, label }));
  return HttpServerResponse.jsonUnsafe({ providers });
});

/** One for each provider. The provider compares it with the one that the operator registered there. */
const redirectUri = (publicUrl: string, id: ProviderId): string => `${publicUrl}/dashboard/callback/${id}`;

const readQuery = ({ url }: Pick<HttpServerRequest.HttpServerRequest, "url">): string => {
  const start = url.indexOf("?");
  return start < 0 ? "" : url.slice(start + 1);
};

/** Begins a flow. @returns where the browser goes, and what its cookie keeps. */
const begin = Effect.fnUntraced(function* (
  { id, begin: beginAt }: SignInProvider,
  wish: Pick<Flow, "returnTo" | "invitation" | "linkTo">,
) {
  const secrets = {
    state: yield* newPassword,
    nonce: yield* newPassword,
    verifier: yield* newPassword,
  };
  const url = yield* beginAt(secrets, redirectUri((yield* Addresses).publicUrl, id)).pipe(
    Effect.tapError(({ kind, why }) =>
      Effect.logWarning("a sign-in could not begin", { provider: id, kind, why }),
    ),
  );
  return { url, flow: { provider: id, ...secrets, ...wish } };
});

const Wish = Schema.Struct({
  return: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(2000))),
  /** The code of an invitation. It comes in a body, which no log has. */
  invitation: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200))),
  /** Whether the person who is signed in adds the identity to herself. */
  link: Schema.optionalKey(Schema.Boolean),
});

/**
 * The person who is signed in with this browser. No other token will do: an agent's, or one of a single project, would
 * get all that its person may do.
 */
const signedIn = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const authenticate = yield* authenticator;
  const caller = yield* authenticate(request);
  if (caller.kind !== "browser" || caller.projectId !== null)
    return yield* forbidden(caller, { by: "token" });
  return { userId: caller.user.id, browserId: caller.tokenId };
});

/** Begins a flow for the page, which also joins by an invitation, or adds a provider to the person who is signed in. */
const loginByPage = Effect.gen(function* () {
  const signInProvider = yield* provider;
  const request = yield* HttpServerRequest.HttpServerRequest;
  const wish = yield* ownPageBody(Wish, {
    field: "return",
    words: "must be text, `invitation` text and `link` true or false",
  });
  const { url, flow } = yield* Effect.catchTag(
    begin(signInProvider, {
      returnTo: returnPath(wish.return),
      invitation: wish.invitation === undefined ? null : tokenHash(wish.invitation),
      linkTo: wish.link === true ? yield* signedIn(request) : null,
    }),
    "ProviderFault",
    () =>
      new BadGateway({
        error: `${signInProvider.label} does not answer as expected. Try again. The service's log has the reason.`,
        code: "provider_unreachable",
      }),
  );
  return yield* withFlow(HttpServerResponse.jsonUnsafe({ url }), flow);
});

/** What a person reads when a sign-in did not succeed. */
const refusal = (status: number, title: string, text: string) =>
  Effect.flatMap(
    doorPage({
      title,
      status,
      body: `<h1>${escapeHtml(title)}</h1>\n<p>${escapeHtml(text)}</p>\n<p><a href="/">Back to the sign-in</a></p>`,
    }),
    withoutFlow,
  );

const UNSTARTED =
  "It was not started in this browser, it took longer than ten minutes, or another one was started meanwhile. Sign in again.";

interface RefusedSignIn {
  /** The name under which it is counted, and recorded unless `cause` says more. */
  readonly outcome: string;
  readonly cause?: SignInCause | null;
  /** For the log alone. */
  readonly why?: string;
}

/** The count, the log line and the record of a sign-in that did not succeed. */
const refusedSignIn = Effect.fnUntraced(function* (by: ProviderId, { outcome, cause, why }: RefusedSignIn) {
  (yield* Measures).count("sign_ins_total", { provider: by, outcome });
  const words = why ?? (cause == null ? outcome : SIGN_IN_CAUSES[cause]);
  yield* Effect.logWarning("a sign-in was refused", { provider: by, kind: outcome, why: words });
  yield* recordRefusedEntry({
    action: "sign_in",
    changes: {
      by,
      why: outcome === "not_allowed" ? cause : outcome,
      ...(outcome === "unknown" && cause != null && { cause }),
    },
  });
});

/** How a new identity gets its person. */
const chooseEntry = Effect.fnUntraced(function* (flow: Flow, { signUpRefusal }: ProvidedPerson) {
  if (flow.invitation !== null) return { by: "invitation", hash: flow.invitation } satisfies Entry;
  const { signIn } = yield* Limits;
  const mayJoin = signUpRefusal === null && signIn.signUp === "allowed";
  const accountId = mayJoin ? yield* (yield* Operations).operatorAccount : null;
  return accountId === null
    ? ({ by: "none" } satisfies Entry)
    : ({ by: "sign_up", accountId } satisfies Entry);
});

/** What the store keeps of a person who came back from a provider. */
const newIdentity = ({ issuer, subject, name, email }: ProvidedPerson) =>
  Effect.map(newUuid, (id): NewIdentity => ({ id, issuer, subject, name, email }));

const DEACTIVATED = [
  403,
  "You cannot sign in",
  "Your user is deactivated. Ask an owner of the account.",
] as const;

const UNLINKED: Readonly<
  Record<"taken" | "gone" | "full" | "signed_out", readonly [status: number, title: string, text: string]>
> = {
  taken: [409, "Another person has this sign-in", "It belongs to another person of this service."],
  gone: DEACTIVATED,
  signed_out: [
    403,
    "You signed out meanwhile",
    "Nothing was added. Sign in again, and add the sign-in from that browser.",
  ],
  full: [
    409,
    "You have too many sign-ins",
    `A person has at most ${IDENTITIES_MAX}. Remove one on the page of your browsers.`,
  ],
};

/** Adds the identity to the person who began the flow. */
const link = Effect.fnUntraced(function* (
  flow: Flow,
  linkTo: NonNullable<Flow["linkTo"]>,
  person: ProvidedPerson,
) {
  const now = yield* Clock.currentTimeMillis;
  const { userId, browserId } = linkTo;
  const actor = { kind: "person", id: userId, name: null, tokenId: browserId } as const;
  const { issuer, subject, name } = person;
  const changes = { by: flow.provider, issuer, subject, name };
  const row = { action: "identity.linked", target: userId, actor, changes } as const;
  const outcome = yield* (yield* Identities)
    .link(yield* newIdentity(person), linkTo, now)
    .pipe(withAudit((result) => (result === "linked" ? row : null)));
  if (outcome === "linked")
    return yield* withoutFlow(HttpServerResponse.redirect(flow.returnTo, { status: 303 }));
  yield* Effect.logWarning("a sign-in was not added", { provider: flow.provider, why: outcome });
  yield* recordRefusedEntry({
    action: "identity.linked",
    target: userId,
    changes: { by: flow.provider, why: outcome },
  });
  return yield* refusal(...UNLINKED[outcome]);
});

/** The row of a sign-in that found its person, or made her. */
const entryRow = (flow: Flow, sessionId: string) => (result: SignInResult) => {
  if (result.kind !== "signed_in") return null;
  const { person, isNew } = result;
  const action = isNew && flow.invitation !== null ? "invitation.accepted" : "sign_in";
  const actor = signedInActor(person, sessionId);
  return { action, target: person.id, actor, changes: { by: flow.provider, new: isNew } } as const;
};

/** Only a service that lets people sign up says why this person cannot. */
const findSignUpRefusal = ({ signUpRefusal }: ProvidedPerson) =>
  Effect.map(Limits, ({ signIn }) => (signIn.signUp === "allowed" ? signUpRefusal : null));

const enter = Effect.fnUntraced(function* (flow: Flow, person: ProvidedPerson) {
  const identity = yield* newIdentity(person);
  const { row, session } = yield* newSession;
  const result = yield* (yield* Identities)
    .signIn({
      identity,
      signedInBy: flow.provider,
      session: row,
      entry: yield* chooseEntry(flow, person),
      newPerson: { id: yield* newUuid, name: person.name },
    })
    .pipe(withAudit(entryRow(flow, row.id)));
  const signUpCause = result.kind === "unknown" ? yield* findSignUpRefusal(person) : null;
  if (result.kind !== "signed_in")
    yield* refusedSignIn(flow.provider, { outcome: result.kind, cause: signUpCause });
  switch (result.kind) {
    case "signed_in": {
      (yield* Measures).count("sign_ins_total", { provider: flow.provider, outcome: result.kind });
      const home = HttpServerResponse.redirect(flow.returnTo, { status: 303 });
      return yield* Effect.flatMap(withCookie(home, session), withoutFlow);
    }
    case "deactivated":
      return yield* refusal(...DEACTIVATED);
    case "invitation_invalid":
      return yield* refusal(
        403,
        "This invitation is over",
        "It is used, revoked or expired. Ask the person who sent it for another one.",
      );
    case "unknown":
      return yield* refusal(
        403,
        "You need an invitation",
        `This service does not know you yet. ${signUpCause === null ? "" : `You cannot sign up: ${SIGN_IN_CAUSES[signUpCause]} `}Ask an owner of the account for an invitation. If you already have an access token, sign in with it and add this sign-in on the account's page.`,
      );
  }
});

const FAULTS: Readonly<Record<ProviderFault["kind"], readonly [number, string, string]>> = {
  denied: [403, "The sign-in was cancelled", "You or the provider did not allow it."],
  refused: [
    403,
    "The sign-in was refused",
    "The provider's answer does not fit this sign-in. Sign in again. The service's log has the reason.",
  ],
  unreachable: [
    502,
    "The provider does not answer",
    "Try again, or sign in with an access token. The service's log has the reason.",
  ],
};

/** Leads a browser to the provider. @param go the answer with which it goes there */
const leading = Effect.fnUntraced(function* (
  signInProvider: SignInProvider,
  returnTo: string,
  go: (url: string) => Effect.Effect<HttpServerResponse.HttpServerResponse>,
) {
  const begun = yield* Effect.result(begin(signInProvider, { returnTo, invitation: null, linkTo: null }));
  if (begun._tag === "Failure") return yield* refusal(...FAULTS.unreachable);
  const { url, flow } = begun.success;
  return yield* withFlow(yield* go(url), flow);
});

/** Follows a link of the sign-in page. Another link does not begin a sign-in, which could replace the one that this browser has. */
const login = Effect.gen(function* () {
  const signInProvider = yield* provider;
  const request = yield* HttpServerRequest.HttpServerRequest;
  const returnTo = returnPath(new URLSearchParams(readQuery(request)).get("return"));
  if (isOwnNavigation(request.headers))
    return yield* leading(signInProvider, returnTo, (url) =>
      Effect.succeed(HttpServerResponse.redirect(url, { status: 303 })),
    );
  const body = [
    "<h1>Sign in</h1>",
    `<form method="post" action="/dashboard/login/${signInProvider.id}"><input type="hidden" name="return" value="${escapeHtml(returnTo)}">`,
    `<p><button type="submit">Sign in with ${escapeHtml(signInProvider.label)}</button></p></form>`,
    '<p class="quiet">If you did not want to sign in, <a href="/">go to the page</a>.</p>',
  ];
  return yield* doorPage({ title: "Sign in", body: body.join("\n"), hasForm: true });
});

/** The button of the page above. Browsers do not let a form be redirected to another site (`form-action`), so the answer is a page that goes there. */
const loginByForm = Effect.gen(function* () {
  const signInProvider = yield* provider;
  const returnTo = returnPath((yield* ownForm).get("return"));
  return yield* leading(signInProvider, returnTo, (url) =>
    Effect.map(
      doorPage({
        title: "Sign in",
        body: `<p><a href="${escapeHtml(url)}">Go on to ${escapeHtml(signInProvider.label)}</a></p>`,
      }),
      HttpServerResponse.setHeader("refresh", `0;url=${url}`),
    ),
  );
});

/** By the page's own request, or by its form. */
const postLogin = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest;
  const isForm = /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(headers["content-type"] ?? "");
  return yield* isForm ? loginByForm : loginByPage;
});

/** The browser comes back. It ends the flow, whatever the answer is. */
const callback = Effect.gen(function* () {
  const { id, finish } = yield* provider;
  const flow = yield* browserFlow(id);
  if (flow === null) {
    yield* refusedSignIn(id, { outcome: "no_flow", why: "its browser has no such flow" });
    return yield* refusal(400, "This sign-in cannot be completed", UNSTARTED);
  }
  const url = new URL(redirectUri((yield* Addresses).publicUrl, id));
  url.search = readQuery(yield* HttpServerRequest.HttpServerRequest);
  const come = yield* Effect.result(finish(url, flow));
  if (come._tag === "Failure") {
    const { kind, why, code } = come.failure;
    yield* refusedSignIn(id, { outcome: kind, why });
    const [status, title, text] = FAULTS[kind];
    return yield* refusal(status, title, code === null ? text : `${text} The provider says: ${code}.`);
  }
  const person = come.success;
  const { entryRefusal: cause } = person;
  if (cause !== null) {
    yield* refusedSignIn(id, { outcome: "not_allowed", cause });
    return yield* refusal(403, "You may not sign in here", SIGN_IN_CAUSES[cause]);
  }
  return flow.linkTo === null ? yield* enter(flow, person) : yield* link(flow, flow.linkTo, person);
});

export const signInRoutes = [
  HttpRouter.route("GET", "/dashboard/providers", withErrors(list)),
  HttpRouter.route("GET", "/dashboard/login/:provider", withErrors(login)),
  HttpRouter.route("POST", "/dashboard/login/:provider", withErrors(postLogin)),
  HttpRouter.route("GET", "/dashboard/callback/:provider", withErrors(callback)),
];
