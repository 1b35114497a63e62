/** Handlers of api/connectors.ts. No answer, log or error contains a credential. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { changesOf, toolPin, type CatalogueTool } from "../../domain/catalogue.ts";
import {
  isConnectorSlug,
  ruleFor,
  shownName,
  type Connector,
  type Executor,
} from "../../domain/connector.ts";
import { checkConnectorCredential, credentialPlace, originOf } from "../../domain/connector-credential.ts";
import { NONCE_BYTES, sealSecret } from "../../domain/secret.ts";
import { Manifests } from "../../duties/manifests.ts";
import { audited } from "../../services/audit.ts";
import { catalogueFor, refreshCatalogue, toolsOf } from "../../services/connectors.ts";
import { Entropy } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import { Connectors, type StoredCatalogue, type StoredCredential } from "../../store/ports/connectors.ts";
import { ExecutorCalls, type ExecutorCall } from "../../store/ports/executor-calls.ts";
import { Caller } from "../api/access.ts";
import { Api } from "../api/api.ts";
import { badRequest, Conflict, notFound } from "../api/errors.ts";
import { answering, projectFor, requireProject } from "./answers.ts";
import { instant, instantOrNull, pageOf } from "./wire.ts";

interface Place {
  readonly pid: string;
  readonly slug: string;
}

/** A credential for another origin is none. */
const credentialFor = ({ auth, url }: Connector, stored: StoredCredential | undefined) =>
  auth.kind !== "none" && stored?.origin === originOf(url) ? stored : null;

const stateOf = (
  connector: Connector,
  credential: StoredCredential | null,
  catalogue: StoredCatalogue | null,
) => {
  if (connector.auth.kind !== "none" && credential === null) return "needs_credential";
  if (catalogue === null) return "needs_refresh";
  if (catalogue.failure !== null) return "failed";
  return toAccept(catalogue) > 0 || catalogue.accepted === null ? "needs_acceptance" : "ready";
};

const toAccept = ({ accepted, latest }: StoredCatalogue): number => {
  const { added, changed } = changesOf(accepted?.catalogue ?? null, latest?.catalogue ?? null);
  return added.length + changed.length;
};

const connectorWire = (
  connector: Connector,
  stored: StoredCredential | undefined,
  seen: StoredCatalogue | null | undefined,
) => {
  const { slug, kind, url, auth, sessions, direct } = connector;
  const credential = credentialFor(connector, stored);
  const catalogue = catalogueFor(connector, seen);
  return {
    slug,
    kind,
    url,
    auth: auth.kind,
    auth_name: "name" in auth ? auth.name : null,
    sessions,
    direct,
    state: stateOf(connector, credential, catalogue),
    credential:
      credential === null
        ? null
        : {
            origin: credential.origin,
            updated_at: instant(credential.updatedAt),
            updated_by: credential.updatedBy,
          },
    usable: toolsOf(catalogue).length,
    to_accept: catalogue === null ? 0 : toAccept(catalogue),
    failure: catalogue?.failure ?? null,
    refreshed_at: instantOrNull(catalogue?.latest?.at ?? null),
  } as const;
};

const list = Effect.fnUntraced(function* (pid: string) {
  const project = yield* projectFor(yield* Caller, pid);
  const { executor, errors } = yield* (yield* Manifests).current(project);
  const store = yield* Connectors;
  const credentials = new Map((yield* store.credentials(pid)).map((row) => [row.slug, row]));
  const catalogues = new Map((yield* store.catalogues(pid)).map((row) => [row.slug, row]));
  return {
    connectors: executor.connectors.map((connector) =>
      connectorWire(connector, credentials.get(connector.slug), catalogues.get(connector.slug)),
    ),
    default_policy: executor.defaultPolicy,
    errors: errors
      .filter(({ path }) => path === null || /^(?:connectors|executor)\b/.test(path))
      .map(({ path, message, line }) => ({ path, message, line })),
  };
});

/** The connector of the path in the manifest that is in force. */
const connectorFor = Effect.fnUntraced(function* ({ pid, slug }: Place) {
  const project = yield* projectFor(yield* Caller, pid);
  if (!isConnectorSlug(slug))
    return yield* badRequest("slug", "must have 1 to 20 characters of a-z, 0-9 and -");
  const { executor } = yield* (yield* Manifests).current(project);
  const connector = executor.connectors.find((one) => one.slug === slug);
  if (connector === undefined) return yield* notFound("connector");
  return { connector, executor };
});

const putCredential = Effect.fnUntraced(function* ({ pid, slug }: Place, value: string) {
  const { connector } = yield* connectorFor({ pid, slug });
  if (connector.auth.kind === "none")
    return yield* new Conflict({
      error: `The connector ${slug} takes no credential: its auth is "none". Change it in platform.toml first.`,
      code: "no_credential_needed",
    });
  const wrong = checkConnectorCredential(value);
  if (wrong !== null) return yield* badRequest("value", wrong);
  const store = yield* Connectors;
  const version = yield* store.nextVersion(pid, slug);
  const place = { projectId: pid, slug, origin: originOf(connector.url), version };
  const nonce = (yield* Entropy)(NONCE_BYTES);
  const envelope = sealSecret((yield* Keyring).secrets, credentialPlace(place), { value, nonce });
  const by = { userId: (yield* Caller).user.id, now: yield* Clock.currentTimeMillis };
  const row = {
    action: "connector.credential_set",
    target: slug,
    changes: { origin: place.origin },
  } as const;
  yield* store.putCredential({ ...place, envelope }, by).pipe(
    audited(() => row),
    Effect.catchTag("Fenced", () =>
      Effect.fail(
        new Conflict({
          error: "Another request changed this credential at the same time. Try again.",
          code: "conflict",
        }),
      ),
    ),
  );
  yield* refreshCatalogue(pid, connector);
  const stored = (yield* store.credentials(pid)).find((one) => one.slug === slug);
  return connectorWire(connector, stored, yield* store.catalogue(pid, slug));
});

/** A credential of a connector that the manifest does not have any more can be removed too. */
const deleteCredential = Effect.fnUntraced(function* ({ pid, slug }: Place) {
  yield* projectFor(yield* Caller, pid);
  if (!isConnectorSlug(slug))
    return yield* badRequest("slug", "must have 1 to 20 characters of a-z, 0-9 and -");
  const now = yield* Clock.currentTimeMillis;
  const row = { action: "connector.credential_removed", target: slug } as const;
  const removed = (yield* Connectors).removeCredential(pid, slug, now);
  if (!(yield* removed.pipe(audited((isRemoved) => (isRemoved ? row : null)))))
    return yield* notFound("credential");
});

const shapeOf = ({ description, inputSchema }: CatalogueTool) => ({ description, input_schema: inputSchema });

const catalogueWire = (executor: Executor, connector: Connector, stored: StoredCatalogue | null) => {
  const { slug } = connector;
  const latest = stored?.latest ?? null;
  const accepted = stored?.accepted ?? null;
  const before = new Map((accepted?.catalogue.tools ?? []).map((tool) => [tool.name, tool]));
  return {
    slug,
    pin: latest?.pin ?? null,
    refreshed_at: instantOrNull(latest?.at ?? null),
    accepted_at: instantOrNull(accepted?.at ?? null),
    accepted_by: accepted?.by ?? null,
    failure: stored?.failure ?? null,
    removed: changesOf(accepted?.catalogue ?? null, latest?.catalogue ?? null).removed,
    tools: (latest?.catalogue.tools ?? []).map((tool) => {
      const former = before.get(tool.name);
      const { policy, rule } = ruleFor(executor, connector, tool.name);
      const isSame = former !== undefined && toolPin(former) === toolPin(tool);
      const state =
        former === undefined ? ("new" as const) : isSame ? ("accepted" as const) : ("changed" as const);
      return {
        name: tool.name,
        shown: shownName(slug, tool.name),
        description: tool.description,
        input_schema: tool.inputSchema,
        policy,
        rule,
        state,
        accepted: former === undefined || isSame ? null : shapeOf(former),
      };
    }),
    left_out: latest?.catalogue.leftOut ?? [],
  };
};

const catalogue = Effect.fnUntraced(function* (place: Place) {
  const { connector, executor } = yield* connectorFor(place);
  const stored = catalogueFor(connector, yield* (yield* Connectors).catalogue(place.pid, place.slug));
  return catalogueWire(executor, connector, stored);
});

type Action = { readonly action: "refresh" } | { readonly action: "accept"; readonly pin: string };

const changeCatalogue = Effect.fnUntraced(function* (place: Place, wish: Action) {
  const { connector } = yield* connectorFor(place);
  const { pid: projectId, slug } = place;
  if (wish.action === "refresh") yield* refreshCatalogue(projectId, connector);
  else {
    const by = { pin: wish.pin, userId: (yield* Caller).user.id, now: yield* Clock.currentTimeMillis };
    const key = { projectId, slug, url: connector.url };
    const row = { action: "connector.tools_accepted", target: slug, changes: { pin: wish.pin } } as const;
    const accepted = (yield* Connectors).accept(key, by);
    if (!(yield* accepted.pipe(audited((isAccepted) => (isAccepted ? row : null)))))
      return yield* new Conflict({
        error:
          "The connector's tools are not those that you looked at. Look at them again, then accept them.",
        code: "catalogue_changed",
      });
  }
  return yield* catalogue(place);
});

const callWire = (call: ExecutorCall) => ({
  id: call.id,
  session_id: call.sessionId,
  user_id: call.userId,
  started_by: call.startedBy,
  connector: call.connector,
  tool: call.tool,
  origin: call.origin,
  pin: call.pin,
  rule: call.rule,
  arguments_digest: call.argumentsDigest,
  arguments_bytes: call.argumentsBytes,
  arguments_preview: call.argumentsPreview,
  at: instant(call.at),
  begun_at: instantOrNull(call.begunAt),
  approver: call.approver,
  ended_at: instantOrNull(call.endedAt),
  outcome: call.outcome,
  message: call.message,
  upstream_status: call.upstreamStatus,
  result_bytes: call.resultBytes,
});

export const connectorsHandlers = HttpApiBuilder.group(Api, "connectors", (handlers) =>
  handlers
    .handle("list", ({ params }) => answering(list(params.pid)))
    .handle("putCredential", ({ params, payload }) => answering(putCredential(params, payload.value)))
    .handle("deleteCredential", ({ params }) => answering(deleteCredential(params)))
    .handle("catalogue", ({ params }) => answering(catalogue(params)))
    .handle("changeCatalogue", ({ params, payload }) => answering(changeCatalogue(params, payload)))
    .handle("calls", ({ params, query }) =>
      answering(
        Effect.gen(function* () {
          yield* requireProject(yield* Caller, params.pid);
          const { session_id: sessionId, connector } = query;
          const page = yield* (yield* ExecutorCalls).list(params.pid, {
            ...pageOf(query),
            sessionId,
            connector,
          });
          return { calls: page.items.map(callWire), next_cursor: page.nextCursor };
        }),
      ),
    ),
);
