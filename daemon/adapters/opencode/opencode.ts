/** opencode as a runtime, through its own HTTP API (`opencode serve`, version 1.18). */
import type { TurnEnd } from "../../report.ts";
import {
  type AccountProvider,
  insideAddress,
  PLACEHOLDER_KEY,
  type ProviderKind,
} from "../../../src/domain/sandbox/account-provider.ts";
import { request } from "node:http";
import { pathToFileURL } from "node:url";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Option from "effect/Option";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import { GATEWAY_PROVIDER, HOSTED_PROVIDER } from "../../../src/domain/sandbox/model.ts";
import { GatewayCalls } from "../../agent/gateway-calls.ts";
import { noteItem } from "../../conversation/note.ts";
import { callHttp, HttpFailure } from "../../http/client.ts";
import {
  PROBE_TIMEOUT_MS,
  TURN_LIMITS,
  type ItemDraft,
  type Observers,
  type RuntimeAdapter,
  type RuntimeModels,
  type RuntimeTools,
  type TurnLimits,
} from "../adapter.ts";
import { OpencodeApi } from "./api.ts";
import { OpencodeConversation } from "./conversation.ts";
import { GATEWAY, GATEWAY_MS, keepConnected } from "./gateway.ts";
import { isAbort, errorOfFinish, retryNote, RuntimeError, turnError } from "../turn-errors.ts";
import { readConversation, settleConversation } from "./listing.ts";
import { OpencodeSteering } from "./steering.ts";
import { type AtWork, decodeEvent, OpencodeTurns, type Retry, type RuntimeEvent } from "./turns.ts";

/** A longer event is ignored. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;
/** It looks for updates of packages, which no sandbox can reach, and gives up after some seconds. */
const REHEARSAL_MS = 30_000;
/** It opens the project first. */
const CONFIG_MS = 30_000;
/** The gateway to connectors. The token is named, never written. */
const CONNECTORS = {
  type: "remote",
  url: "{env:PLATFORM_API_URL}/projects/{env:PLATFORM_PROJECT_ID}/executor/mcp",
  headers: { Authorization: "Bearer {env:PLATFORM_EXECUTOR_TOKEN}" },
  oauth: false,
  // It has no timeout of its own: that would count for the connection, too, for which a turn waits before it calls the model.
  enabled: true,
};

/** Overrides the project's configuration. File snapshots cost seconds on a large repository. */
const fixedConfig = ({ hasConnectors, permissions }: RuntimeTools): string =>
  JSON.stringify({
    autoupdate: false,
    share: "disabled",
    snapshot: false,
    ...(permissions !== null && { permission: { bash: permissions, edit: permissions } }),
    ...(hasConnectors && { mcp: { [GATEWAY]: CONNECTORS } }),
  });

/** opencode does not know the gateway's models, and hides images from a model unless it is told. A project can say otherwise. */
const SEES_IMAGES = { attachment: true, modalities: { input: ["text", "image"], output: ["text"] } };

/** opencode does not know which efforts the models of these providers take. A model that takes none refuses the call. */
const EFFORTS = Object.fromEntries(
  ["low", "medium", "high"].map((effort) => [effort, { reasoningEffort: effort }]),
);
const KINDS_WITH_EFFORTS: ReadonlySet<ProviderKind> = new Set(["openai", "openai-compatible"]);

/** The managed gateway as a provider. Its key is named, never written. */
const gatewayProvider = (models: readonly string[]) => ({
  name: "Managed model gateway",
  npm: "@ai-sdk/openai-compatible",
  options: { baseURL: "{env:PLATFORM_LLM_BASE_URL}", apiKey: "{env:PLATFORM_LLM_API_KEY}" },
  models: Object.fromEntries(models.map((id) => [id, { name: id, ...SEES_IMAGES, variants: EFFORTS }])),
});

/** The program that speaks to a kind of provider, and what it adds to the inside address. opencode has all of them. */
const PROGRAMS: Readonly<Record<ProviderKind, readonly [npm: string, below: string]>> = {
  anthropic: ["@ai-sdk/anthropic", "/v1"],
  openai: ["@ai-sdk/openai", ""],
  "openai-compatible": ["@ai-sdk/openai-compatible", ""],
  gemini: ["@ai-sdk/google", "/v1beta"],
};

/** An account's own provider. It offers no model beyond those that the account names. */
const accountProvider = ({ name, kind, models }: AccountProvider) => {
  const [npm, below] = PROGRAMS[kind];
  return {
    name,
    npm,
    options: { baseURL: `${insideAddress(name)}${below}`, apiKey: PLACEHOLDER_KEY },
    models: Object.fromEntries(
      models.map((id) => [
        id,
        { name: id, ...SEES_IMAGES, ...(KINDS_WITH_EFFORTS.has(kind) && { variants: EFFORTS }) },
      ]),
    ),
    whitelist: models,
  };
};

/**
 * opencode itself only asks its model to change nothing while it plans, and a permission for all overrides what it forbids. A command may
 * change anything, so a person decides. The project can permit some in its own configuration.
 */
const PLANNING = { permission: { edit: "deny", bash: "ask" } };

/** All permissions, because the sandbox is the boundary. The project can restrict them. */
export const opencodeDefaults = ({
  model,
  plugin,
  gateway,
  providers,
  hosted,
  defined,
  instructions,
}: RuntimeModels): string =>
  JSON.stringify({
    // See OWN_EDIT.
    $schema: "https://opencode.ai/config.json",
    permission: { "*": "allow" },
    // opencode adds the project's own plugins to this list.
    ...(plugin !== null && { plugin: [pathToFileURL(plugin).href] }),
    ...(model !== null && { model }),
    // The agent's own file adds to it, or overrides it.
    agent: { ...(defined !== null && { [defined]: { mode: "primary" } }), plan: PLANNING },
    ...(instructions !== null && { instructions: [instructions] }),
    // For calls of tools only. opencode gives up a connection after 30 s.
    experimental: { mcp_timeout: GATEWAY_MS },
    provider: {
      ...Object.fromEntries(providers.map((provider) => [provider.name, accountProvider(provider)])),
      ...(gateway.length > 0 && { [GATEWAY_PROVIDER]: gatewayProvider(gateway) }),
      // Without this, opencode falls back to its own hosted models, which no sandbox can reach.
      ...(!hosted && { [HOSTED_PROVIDER]: { whitelist: [] } }),
    },
  });

/** opencode loads its plugins when it opens the project, before it starts any program of the project. */
const sessionPlugin = (variables: string): string =>
  `import { readFileSync } from "node:fs";
export const SessionEnvironment = async () => {
  try {
    Object.assign(process.env, JSON.parse(readFileSync(${JSON.stringify(variables)}, "utf8")));
  } catch {}
  return {};
};
`;

/** opencode adds the schema to a configuration file without one, including the project's own, as soon as it reads it. */
const OWN_EDIT = {
  pattern: String.raw`\n  "$schema": "https://opencode\.ai/config\.json",`,
  files: ["opencode.json", "opencode.jsonc"],
  directories: ["", ".opencode"],
  made: Effect.void,
};

/** How opencode is set up, in each of its modes. */
export const opencodeSettings: Pick<RuntimeAdapter, "defaults" | "ownEdit" | "environment"> = {
  defaults: opencodeDefaults,
  ownEdit: OWN_EDIT,
  environment: ({ configDir, defaults, ...tools }) => ({
    OPENCODE_CONFIG: defaults,
    OPENCODE_CONFIG_DIR: configDir,
    OPENCODE_CONFIG_CONTENT: fixedConfig(tools),
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
  }),
};

/** @param gateway the model's calls, as far as they are seen */
export const opencodeAdapter = (
  port: number,
  limits: TurnLimits = TURN_LIMITS,
  gateway: Pick<GatewayCalls, "passed" | "refused"> = new GatewayCalls(),
): RuntimeAdapter => {
  const api = new OpencodeApi(`http://127.0.0.1:${port}`);
  const following = Latch.makeUnsafe(false);
  const conversation = new OpencodeConversation(gateway.passed);
  const steering = new OpencodeSteering({ api, conversation, followed: following });
  return {
    steering,
    ...opencodeSettings,
    // The answer is what it read.
    ownEdit: {
      ...OWN_EDIT,
      made: Effect.asVoid(callHttp({ url: api.url("/config"), timeoutMs: CONFIG_MS })),
    },
    ahead: { plugin: sessionPlugin, rehearse: (directory) => rehearse(api, directory) },
    talk: null,
    lost: Effect.never,
    hasHttp: true,
    open: null,
    probe: Effect.asVoid(callHttp({ url: api.url("/global/health"), timeoutMs: PROBE_TIMEOUT_MS })),
    deliverPrompt: steering.deliver,
    restore: steering.restore,
    // It gets the history that the service keeps, which needs no files of one version.
    record: null,
    tell: steering.tell,
    follow: (sessionId, observers) =>
      follow({ api, limits, sessionId, observers, conversation, steering, followed: following, gateway }),
    isBusy: Effect.map(api.busySessions, (busy) => busy.length > 0),
    abort: Effect.gen(function* () {
      const busy = yield* api.busySessions;
      for (const id of busy) steering.noteStopped(id);
      yield* Effect.forEach(busy, (id) => api.post(`/session/${id}/abort`), { discard: true });
      return busy.length > 0;
    }),
  };
};

/** Opens a project in the directory and closes it again. */
const rehearse = Effect.fnUntraced(function* (api: OpencodeApi, directory: string) {
  const at = `directory=${encodeURIComponent(directory)}`;
  yield* callHttp({ url: api.url(`/session?${at}`), timeoutMs: REHEARSAL_MS });
  yield* callHttp({ url: api.url(`/instance/dispose?${at}`), method: "POST", timeoutMs: REHEARSAL_MS });
});

/** How often turns are checked against the clock. */
const CHECK_EVERY = "1 second";
/** Retries for calls that must reach the runtime. */
const POST_AGAIN = { schedule: Schedule.spaced("500 millis"), times: 5 };

const Updated = Schema.Array(
  Schema.Struct({
    id: Schema.String,
    parentID: Schema.optionalKey(Schema.String),
    time: Schema.Struct({ updated: Schema.Finite }),
  }),
);
const Ends = Schema.Array(
  Schema.Struct({
    info: Schema.Struct({
      error: Schema.optionalKey(RuntimeError),
      finish: Schema.optionalKey(Schema.String),
    }),
  }),
);

/** How the newest turn ended, according to the conversation's last message. */
const lastEnd = Effect.fnUntraced(function* (api: OpencodeApi) {
  const sessions = yield* api.get("/session", Updated);
  const [newest] = sessions
    .filter(({ parentID }) => parentID === undefined)
    .toSorted((a, b) => b.time.updated - a.time.updated);
  if (newest === undefined) return null;
  const info = (yield* api.get(`/session/${newest.id}/message?limit=1`, Ends)).at(-1)?.info;
  const error = info?.error ?? errorOfFinish(info?.finish);
  if (error === undefined) return { state: "completed", error: null } satisfies TurnEnd;
  return (
    isAbort(error) ? { state: "interrupted", error: null } : { state: "failed", error: turnError(error) }
  ) satisfies TurnEnd;
});

const Newest = Schema.Array(
  Schema.Struct({
    info: Schema.Struct({
      id: Schema.String,
      role: Schema.String,
      time: Schema.Struct({ completed: Schema.optionalKey(Schema.Finite) }),
    }),
    parts: Schema.Array(
      Schema.Struct({
        id: Schema.String,
        messageID: Schema.String,
        type: Schema.String,
        text: Schema.optionalKey(Schema.String),
        state: Schema.optionalKey(Schema.Struct({ status: Schema.String })),
      }),
    ),
  }),
);

/** The present step of a session at work. */
const atWork = (api: OpencodeApi, id: string): Effect.Effect<AtWork, HttpFailure> =>
  Effect.map(api.get(`/session/${id}/message?limit=1`, Newest), (messages) => ({
    id,
    newest: messages.at(-1) ?? null,
  }));

/** One note for each call, with its newest attempt: the reader sees why the answer takes so long. */
const retryItem = (retry: Retry): ItemDraft =>
  noteItem(`retry_${retry.sessionId}`, retryNote(retry), retry.callSince);

interface Following {
  readonly api: OpencodeApi;
  readonly limits: TurnLimits;
  /** The title of the agent session whose conversation is followed. */
  readonly sessionId: string;
  readonly observers: Observers;
  /** It outlives a stream: a part that was followed before the stream broke off may never be told again. */
  readonly conversation: OpencodeConversation;
  readonly steering: OpencodeSteering;
  /** Open while events are received. */
  readonly followed: Latch.Latch;
  readonly gateway: Pick<GatewayCalls, "refused">;
}

const follow = (following: Following) => {
  const { api, limits, sessionId, observers, conversation, steering, followed, gateway } = following;
  return Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const now = () => clock.currentTimeMillisUnsafe();
    const run = Effect.runForkWith(yield* Effect.context());
    const scope = yield* Effect.scope;
    const inScope = (work: Effect.Effect<unknown, HttpFailure>) =>
      run(Effect.forkIn(Effect.ignore(Effect.retry(work, POST_AGAIN)), scope));
    const abort = (id: string) => void inScope(api.post(`/session/${id}/abort`));
    const turns = new OpencodeTurns(limits, observers.turns, {
      abort,
      retried: (retry) => observers.conversation.item(retryItem(retry)),
      failed: (id, error) => steering.noteError(id, error),
      wasStopped: (id) => steering.wasStopped(id),
      again: () => gateway.refused?.again ?? null,
    });
    conversation.connected({
      title: sessionId,
      observer: observers.conversation,
      now,
      onUnsettled: () => void inScope(settleConversation(api, conversation)),
    });
    inScope(Effect.map(steering.contextSizes, (sizes) => conversation.sized(sizes)));
    yield* Effect.forkIn(keepConnected(api), scope);
    const check = Effect.sync(() => turns.check(now()));
    yield* Effect.forkIn(Effect.repeat(check, Schedule.spaced(CHECK_EVERY)), scope);
    // The stream opens before anything is read, so no event is missed in between.
    const stream = followEvents(api.url("/event"), (event, whole) => {
      if (event.type === "server.connected") {
        followed.openUnsafe();
        observers.turns.followed();
      }
      conversation.take(whole);
      turns.take(event, now());
    });
    const already = Effect.gen(function* () {
      const busy = yield* api.busySessions;
      // An earlier stream broke off during a turn, which has ended meanwhile.
      const missedEnd = observers.turns.isActive() && busy.length === 0 ? yield* lastEnd(api) : null;
      if (missedEnd !== null && observers.turns.isActive()) observers.turns.ended(missedEnd);
      turns.already(yield* Effect.forEach(busy, (id) => atWork(api, id)), now());
      yield* readConversation(api, conversation);
      return yield* Effect.never;
    });
    return yield* Effect.raceFirst(stream, already);
  }).pipe(Effect.scoped, Effect.ensuring(followed.close));
};

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown));

/** Reads a stream of server-sent events until it breaks. */
const followEvents = (
  url: string,
  take: (event: RuntimeEvent, whole: unknown) => void,
): Effect.Effect<never, HttpFailure> =>
  Effect.callback<never, HttpFailure>((resume) => {
    const fail = (message: string) => resume(Effect.fail(new HttpFailure({ status: null, message })));
    const call = request(url, { agent: false, headers: { accept: "text/event-stream" } });
    call.on("error", (error) => fail(error.message));
    call.on("response", (answer) => {
      let rest = "";
      answer.setEncoding("utf8");
      answer.on("data", (text: string) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        if (rest.length > MAX_EVENT_LENGTH) call.destroy(new Error("an event is too long"));
        for (const line of lines) {
          if (!line.startsWith("data:")) continue;
          const whole = decodeJson(line.slice(5));
          const event = Option.flatMap(whole, decodeEvent);
          if (event._tag === "Some") take(event.value, Option.getOrNull(whole));
        }
      });
      answer.on("error", (error) => fail(error.message));
      answer.on("end", () => fail("the event stream ended"));
    });
    call.end();
    return Effect.sync(() => call.destroy());
  });
