/**
 * The tools that an agent has through the platform, and the one way on which each of its calls is decided.
 *
 *  X1 Connectors and rules come from the default branch's manifest. Nothing that the agent sends or that a session's
 *     branch holds changes them.
 *  X2 A call is decided in one place, whatever name the agent used: its session, the accepted tool, the rule, the
 *     credential, the limits. Then its row is written, and then it is sent. No row, no call.
 *  X3 Every call that a connector of the manifest was asked for has a row, also a refused one, up to the connector's
 *     limit.
 *  X4 A call whose result is not known is `unknown`, and is not repeated.
 */
import { createHash } from "node:crypto";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import { isShallow, toolPin, type CatalogueTool } from "../domain/catalogue.ts";
import {
  ruleFor,
  shownName,
  type Policy,
  type Connector,
  type Executor,
  type SessionKind,
} from "../domain/connector.ts";
import { credentialMask, maskJson, originOf } from "../domain/connector-credential.ts";
import { Redactor } from "../domain/redactor.ts";
import { openSecrets } from "../duties/secrets.ts";
import { ConnectorServers, type ServerFault, type ToolResult } from "../mcp/port.ts";
import { Connectors, type StoredCatalogue } from "../store/ports/connectors.ts";
import { ExecutorCalls, type CallEnd, type CallLimits, type NewCall } from "../store/ports/executor-calls.ts";
import type { StoreError } from "../store/ports/journal.ts";
import { catalogueFor, executorOf, openCredential, targetOf, toldBy, toolsOf } from "./connectors.ts";
import { newUuid } from "./entropy.ts";

/** The session for which an agent calls. */
export interface AgentCaller {
  readonly projectId: string;
  readonly sessionId: string;
  readonly userId: string;
  readonly startedBy: SessionKind;
}

/** A result for the agent. */
export interface AgentResult {
  readonly content: readonly unknown[];
  readonly structuredContent?: unknown;
  readonly isError: boolean;
}

export type Arguments = Readonly<Record<string, unknown>>;

/** A row without an outcome counts as under way for this long: a call ends within 60 s. */
export const CALL_LIMITS: CallLimits = { atOnce: 8, perConnector: 60, windowMs: 60_000, openMs: 90_000 };
const ARGUMENTS_MAX_BYTES = 256 * 1024;
/** The beginning of the arguments that the record keeps. */
const PREVIEW_LENGTH = 2000;
/** How many tools one search finds, and how much text they may be. */
const FOUND_MAX = 10;
const FOUND_MAX_BYTES = 64 * 1024;

/** A text as a result. */
export const said = (text: string, isError = false): AgentResult => ({
  content: [{ type: "text", text }],
  isError,
});

interface Known {
  readonly connector: Connector;
  readonly catalogue: StoredCatalogue | null;
}

/** A tool as an agent may find it. */
interface Offer {
  readonly shown: string;
  readonly tool: CatalogueTool;
  readonly connector: Connector;
  readonly policy: Policy;
}

/** The connectors that the session may use, each with its catalogue. Reads the store once, and no server. */
const connectorsFor = Effect.fnUntraced(function* ({ projectId, startedBy }: AgentCaller) {
  const executor = yield* executorOf(projectId);
  const connectors = (executor?.connectors ?? []).filter(({ sessions }) => sessions.includes(startedBy));
  if (executor === null || connectors.length === 0) return { executor, known: [] };
  const stored = new Map((yield* (yield* Connectors).catalogues(projectId)).map((row) => [row.slug, row]));
  return {
    executor,
    known: connectors.map((connector): Known => ({
      connector,
      catalogue: catalogueFor(connector, stored.get(connector.slug)),
    })),
  };
});

/** In the order of slugs and names. */
const offersOf = (executor: Executor, known: readonly Known[]): readonly Offer[] =>
  known.flatMap(({ connector, catalogue }) =>
    toolsOf(catalogue).flatMap((tool) => {
      const { policy } = ruleFor(executor, connector, tool.name);
      return policy === "deny"
        ? []
        : [{ shown: shownName(connector.slug, tool.name), tool, connector, policy }];
    }),
  );

/** The tools that the manifest shows by name. A tool that must be asked for is not among them. */
export const directTools = Effect.fnUntraced(function* (caller: AgentCaller) {
  const { executor, known } = yield* connectorsFor(caller);
  if (executor === null) return [];
  return offersOf(executor, known)
    .filter(({ connector, tool, policy }) => policy === "allow" && connector.direct.includes(tool.name))
    .map(({ shown, tool }) => ({
      name: shown,
      description: tool.description,
      inputSchema: tool.inputSchema,
    }));
});

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** Words in the name count more than words in the description. */
const scoreOf = ({ shown, tool }: Offer, words: readonly string[]): number => {
  const [name, about] = [shown.toLowerCase(), tool.description.toLowerCase()];
  return words.reduce(
    (score, word) => score + (name.includes(word) ? 3 : 0) + (about.includes(word) ? 1 : 0),
    0,
  );
};

const MUST_ASK = "A person must allow this tool first. Its policy is ask, and this service cannot ask yet.";

/** The tools that fit a query best, as JSON. A tool without any of the words is left out. */
export const findTools = Effect.fnUntraced(function* (caller: AgentCaller, query: string) {
  const { executor, known } = yield* connectorsFor(caller);
  const offers = executor === null ? [] : offersOf(executor, known);
  const words = wordsOf(query.slice(0, 1000));
  const found = offers
    .map((offer) => ({ offer, score: scoreOf(offer, words) }))
    .filter(({ score }) => words.length === 0 || score > 0)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, FOUND_MAX);
  let left = FOUND_MAX_BYTES;
  const shown = found.map(({ offer: { shown: name, tool, policy } }) => {
    const { description, inputSchema } = tool;
    const about = { name, description, input_schema: inputSchema };
    const entry = policy === "ask" ? Object.assign(about, { note: MUST_ASK }) : about;
    left -= Buffer.byteLength(JSON.stringify(entry));
    return left < 0 ? { name, note: "Its description is too long here. Search for it alone." } : entry;
  });
  const hint = shown.length === 0 ? noneFound(offers.length, known.length) : "Call one with call_tool.";
  return said(JSON.stringify({ tools: shown, of: offers.length, hint }));
});

const noneFound = (offers: number, connectors: number): string => {
  if (connectors === 0) return "This session has no connectors.";
  if (offers === 0) return "No tool of this project's connectors is accepted yet. A person can accept them.";
  return "No tool has these words. Try other words, or an empty query for the first tools.";
};

/** The decision about a call: refused with a sentence, or to be sent. */
type Decision =
  | {
      readonly refused: string;
      readonly rule: string | null;
      readonly pin: string | null;
      readonly tool: string;
    }
  | {
      readonly refused: null;
      readonly rule: string;
      readonly pin: string;
      readonly tool: CatalogueTool;
      readonly credential: string | null;
      readonly protocol: string;
    };

interface Asked {
  readonly caller: AgentCaller;
  readonly executor: Executor;
  readonly connector: Connector;
  /** The tool's name as the agent wrote it. */
  readonly name: string;
  readonly given: Arguments;
}

/** How a person allows a tool, in a sentence. */
const howToAllow = (slug: string, tool: string): string =>
  `A person can allow it with policy = "allow" for the tool ${tool} of the connector ${slug} in platform.toml on the default branch.`;

/** The tool that a name means, in what was last seen. */
const toolNamed = (slug: string, name: string, catalogue: StoredCatalogue | null) =>
  catalogue?.latest?.catalogue.tools.find((tool) => shownName(slug, tool.name) === name) ?? null;

/** X2, up to the limits. */
const decide = Effect.fnUntraced(function* ({ caller, executor, connector, name, given }: Asked) {
  const { slug } = connector;
  const refuse = (refused: string, about: { tool?: string; rule?: string; pin?: string } = {}): Decision => ({
    refused,
    tool: about.tool ?? name.slice(0, 64),
    rule: about.rule ?? null,
    pin: about.pin ?? null,
  });
  if (!connector.sessions.includes(caller.startedBy))
    return refuse(`The connector ${slug} is not open to sessions that a ${caller.startedBy} started.`);
  const catalogue = catalogueFor(connector, yield* (yield* Connectors).catalogue(caller.projectId, slug));
  const tool = toolNamed(slug, name, catalogue);
  const latest = catalogue?.latest;
  if (tool === null || latest === null || latest === undefined)
    return refuse(`No tool has the name ${name.slice(0, 64)}. Find tools with find_tools.`);
  const pin = toolPin(tool);
  if (!toolsOf(catalogue).includes(tool))
    return refuse(
      `The tool ${tool.name} of ${slug} is new or was changed, and no person has accepted it yet. A person can accept it: platform connectors accept ${slug}.`,
      { tool: tool.name, pin },
    );
  const { policy, rule } = ruleFor(executor, connector, tool.name);
  const about = { tool: tool.name, pin, rule };
  if (policy === "deny") return refuse(`The tool ${tool.name} of ${slug} is denied by platform.toml.`, about);
  if (policy === "ask")
    return refuse(
      `The tool ${tool.name} of ${slug} needs a person's approval, and this service cannot ask for one yet. ${howToAllow(slug, tool.name)}`,
      about,
    );
  if (!isShallow(given) || Buffer.byteLength(JSON.stringify(given)) > ARGUMENTS_MAX_BYTES)
    return refuse(`The arguments are larger than ${ARGUMENTS_MAX_BYTES} bytes, or too deeply nested.`, about);
  const opened = yield* openCredential(caller.projectId, connector);
  if (opened.missing !== null) return refuse(opened.missing, about);
  const { protocol } = latest;
  return { refused: null, rule, pin, tool, credential: opened.credential, protocol } satisfies Decision;
});

/** The row of a call, with the beginning of its arguments. Secrets of the project are masked in it. */
const rowOf = Effect.fnUntraced(function* ({ caller, connector, given }: Asked, decision: Decision) {
  const text = isShallow(given) ? JSON.stringify(given) : "{}";
  const { values } = yield* openSecrets(caller.projectId);
  const secrets = new Redactor(Object.values(values));
  const { refused, rule, pin, tool } = decision;
  return {
    id: yield* newUuid,
    ...caller,
    connector: connector.slug,
    tool: refused === null ? tool.name : tool,
    origin: originOf(connector.url),
    pin,
    rule,
    argumentsDigest: createHash("sha256").update(text).digest("hex"),
    argumentsBytes: Buffer.byteLength(text),
    argumentsPreview: secrets.redactBeginning(text, PREVIEW_LENGTH).toWellFormed(),
    at: yield* Clock.currentTimeMillis,
  } satisfies NewCall;
});

const BUSY = {
  session_busy: `This session has ${CALL_LIMITS.atOnce} calls under way. Wait for one of them.`,
  connector_busy: `The connector had ${CALL_LIMITS.perConnector} calls in the last minute. Wait a moment.`,
} as const;

/**
 * Calls a tool by the name that the agent has for it.
 *
 * @returns its result. A refusal and a failure are results, too.
 */
export const callTool = Effect.fnUntraced(function* (caller: AgentCaller, name: string, given: Arguments) {
  const executor = yield* executorOf(caller.projectId);
  const slug = name.slice(0, Math.max(0, name.indexOf("_")));
  const connector = executor?.connectors.find((one) => one.slug === slug);
  if (executor === null || connector === undefined)
    return said(`No tool has the name ${name.slice(0, 64)}. Find tools with find_tools.`, true);
  const asked = { caller, executor, connector, name, given };
  const decision = yield* decide(asked);
  const row = yield* rowOf(asked, decision);
  const calls = yield* ExecutorCalls;
  if (decision.refused !== null) {
    yield* calls.deny(row, { message: decision.refused, limits: CALL_LIMITS });
    return said(decision.refused, true);
  }
  const begun = yield* calls.begin(row, CALL_LIMITS);
  if (begun !== "begun") return said(BUSY[begun], true);
  const { tool, credential, protocol } = decision;
  const send = Effect.flatMap(ConnectorServers, (servers) =>
    servers.call(targetOf(connector, { credential, protocol }), {
      name: tool.name,
      inputSchema: tool.inputSchema,
      arguments: given,
    }),
  );
  return yield* recorded(row, { connector, credential, send });
});

interface Sending {
  readonly connector: Connector;
  readonly credential: string | null;
  readonly send: Effect.Effect<ToolResult, ServerFault>;
}

/** Sends a call and writes its outcome, also if the agent goes away meanwhile. */
const recorded = (row: NewCall, { connector, credential, send }: Sending) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(restore(send));
      const outcome = outcomeOf(exit, connector, credential);
      yield* write(row.id, outcome);
      return outcome.result;
    }),
  );

interface Outcome {
  readonly end: Omit<CallEnd, "now">;
  readonly result: AgentResult;
}

const outcomeOf = (
  exit: Exit.Exit<ToolResult, ServerFault>,
  { slug, url }: Connector,
  credential: string | null,
): Outcome => {
  const mask = credentialMask(credential);
  const none = { upstreamStatus: null, resultBytes: null };
  if (Exit.isSuccess(exit)) return resultOf(exit.value, mask);
  const fault = faultOf(exit);
  if (fault === null) {
    const message = "The agent or its session ended during the call. The tool may have run.";
    return { end: { ...none, outcome: "unknown", message }, result: said(message, true) };
  }
  const why = `${new URL(url).host} ${toldBy(mask, fault.why)}.`;
  const outcome = fault.isUnknown ? "unknown" : "error";
  const message = fault.isUnknown ? `${why} The tool may have run. It is not called again.` : why;
  return {
    end: { ...none, outcome, message, upstreamStatus: fault.status },
    result: said(`The connector ${slug} gave no result: ${message}`, true),
  };
};

/** Null: the call was interrupted. */
const faultOf = (exit: Exit.Failure<ToolResult, ServerFault>): ServerFault | null =>
  exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error ?? null;

const resultOf = ({ status, ...result }: ToolResult, mask: Redactor): Outcome => {
  const none = { upstreamStatus: status, resultBytes: null };
  if (!isShallow(result)) {
    const message = "The tool ran, and its result is too deeply nested to be passed on.";
    return { end: { ...none, outcome: "error", message }, result: said(message, true) };
  }
  const clean = maskJson(mask, result) as AgentResult;
  const resultBytes = Buffer.byteLength(JSON.stringify(clean));
  return {
    end: {
      ...none,
      resultBytes,
      outcome: clean.isError ? "error" : "ok",
      message: clean.isError ? "The tool answered with an error." : null,
    },
    result: clean,
  };
};

/** The result is the agent's, whatever happens to the record: a duty ends the row if this does not. */
const write = (id: string, { end }: Outcome) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis;
    yield* (yield* ExecutorCalls).end(id, { ...end, now });
  }).pipe(
    Effect.retry({ times: 3 }),
    Effect.catch((error: StoreError) =>
      Effect.logWarning("the outcome of a call was not recorded", { id, error }),
    ),
  );
