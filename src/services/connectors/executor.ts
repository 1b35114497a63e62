/**
 * The tools that an agent has through the platform, and the one way on which each of its calls is decided.
 *
 *  X1 Connectors and rules come from the default branch's manifest. Nothing that the agent sends or that a session's
 *     branch holds changes them.
 *  X2 A call is decided in one place, whatever name the agent used: its session, the accepted tool, the rule, the
 *     credential, the limits. Then its row is written, and then it is sent. No row, no call.
 *  X3 Every call that a connector of the manifest was asked for has a row, also a refused one, up to the connector's
 *     limit.
 *  X4 A call whose policy is `ask` is stored and sent later, by src/features/approvals/duty.ts, which decides again in the same
 *     place.
 *  X5 A call whose result is not known is `unknown`, and is not repeated.
 */
import * as Effect from "effect/Effect";
import { isUsable, type CatalogueTool } from "../../domain/connector/catalogue.ts";
import { ruleFor, type Policy, type Connector, type Executor } from "../../domain/connector/connector.ts";
import { offeredSchema } from "../../domain/connector/tool-schema.ts";
import { shownName } from "../../domain/connector/tool-name.ts";
import { Connectors, type StoredCatalogue } from "../../store/ports/connectors/connectors.ts";
import { ExecutorCalls, type NewCall } from "../../store/ports/connectors/executor-calls.ts";
import { projectRedactor } from "../projects/project-secrets.ts";
import { CallApproval, type TellProgress } from "./call-approval.ts";
import { catalogueFor, projectExecutor } from "./connectors.ts";
import {
  CALL_LIMITS,
  decide,
  onRecord,
  callRow,
  textResult,
  type AgentCaller,
  type Arguments,
  type ToBeSent,
} from "./executor-decision.ts";
import { callServer, callOutcome, refusedByLimit, write } from "./executor-outcome.ts";

/** How many tools one search finds, and how much text they may be. */
const FOUND_MAX = 10;
const FOUND_MAX_BYTES = 64 * 1024;

interface Known {
  readonly connector: Connector;
  readonly catalogue: StoredCatalogue | null;
}

/** A tool as an agent may find it. */
interface Offer {
  readonly shown: string;
  readonly tool: CatalogueTool;
  readonly policy: Policy;
}

/** The connectors that the session may use, each with its catalogue. Reads the store once, and no server. */
const connectorsFor = Effect.fnUntraced(function* ({
  projectId,
  startedBy,
}: Pick<AgentCaller, "projectId" | "startedBy">) {
  const executor = yield* projectExecutor(projectId);
  const connectors = (executor?.connectors ?? []).filter(({ sessions }) => sessions.includes(startedBy));
  if (executor === null || connectors.length === 0) return { executor, known: [] };
  const catalogues = new Map(
    (yield* (yield* Connectors).catalogues(projectId)).map((row) => [row.slug, row]),
  );
  return {
    executor,
    known: connectors.map((connector): Known => ({
      connector,
      catalogue: catalogueFor(connector, catalogues.get(connector.slug)),
    })),
  };
});

/** What an agent may call, in the order of slugs and names. @param isWanted is asked first: a connector has up to 2,000 tools. */
const listOffers = (
  executor: Executor,
  connectors: readonly Known[],
  isWanted: (connector: Connector, tool: CatalogueTool) => boolean = () => true,
): readonly Offer[] =>
  connectors.flatMap(({ connector, catalogue }) => {
    const { latest = null, accepted = null } = catalogue ?? {};
    const tools = latest?.catalogue.tools.filter(
      (tool) => isWanted(connector, tool) && isUsable(accepted?.catalogue ?? null, tool),
    );
    return (tools ?? []).flatMap((tool) => {
      const { policy } = ruleFor(executor, connector, tool.name);
      return policy === "deny" ? [] : [{ shown: shownName(connector.slug, tool.name), tool, policy }];
    });
  });

const isDirect = ({ direct }: Connector, { name }: CatalogueTool): boolean => direct.includes(name);

/** The tools that the manifest shows by name. */
export const directTools = Effect.fnUntraced(function* (
  caller: Pick<AgentCaller, "projectId" | "startedBy">,
) {
  const { executor, known } = yield* connectorsFor(caller);
  if (executor === null) return [];
  return listOffers(executor, known, isDirect).map(({ shown, tool }) => ({
    name: shown,
    description: tool.description,
    inputSchema: offeredSchema(tool.inputSchema),
  }));
});

const splitWords = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** Words in the name count more than words in the description. */
const scoreTool = (tool: FindableTool, words: readonly string[]): number => {
  const [name, about] = [tool.name.toLowerCase(), tool.description.toLowerCase()];
  return words.reduce(
    (score, word) => score + (name.includes(word) ? 3 : 0) + (about.includes(word) ? 1 : 0),
    0,
  );
};

const MUST_ASK = "A person approves or denies each call of this tool.";

/** A tool as `find_tools` shows it. */
export interface FindableTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** What the agent must know before it calls. */
  readonly note: string | null;
}

const findable = ({ shown, tool, policy }: Offer): FindableTool => ({
  name: shown,
  description: tool.description,
  inputSchema: offeredSchema(tool.inputSchema),
  note: policy === "ask" ? MUST_ASK : null,
});

/**
 * The tools that fit a query best, as JSON. A tool without any of the words is left out.
 *
 * @param own the platform's own tools. Of equally good ones, those of connectors come first.
 */
export const findTools = Effect.fnUntraced(function* (
  caller: AgentCaller,
  query: string,
  own: readonly FindableTool[],
) {
  const { executor, known } = yield* connectorsFor(caller);
  const offers = executor === null ? [] : listOffers(executor, known);
  const words = splitWords(query.slice(0, 1000));
  const matches = [...offers.map(findable), ...own]
    .map((tool) => ({ tool, score: scoreTool(tool, words) }))
    .filter(({ score }) => words.length === 0 || score > 0)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, FOUND_MAX);
  let left = FOUND_MAX_BYTES;
  const tools = matches.map(({ tool: { name, description, inputSchema, note } }) => {
    const about = { name, description, input_schema: inputSchema };
    const entry = note === null ? about : Object.assign(about, { note });
    left -= Buffer.byteLength(JSON.stringify(entry));
    return left < 0 ? { name, note: "Its description is too long here. Search for it alone." } : entry;
  });
  const total = offers.length + own.length;
  return textResult(
    JSON.stringify({ tools: tools, of: total, hint: hintFor(tools.length, { offers, known }) }),
  );
});

/** The agent's next step. */
const hintFor = (
  count: number,
  { offers, known }: { readonly offers: readonly Offer[]; readonly known: readonly Known[] },
): string => {
  if (count > 0) return "Call one with call_tool.";
  if (offers.length === 0 && known.length > 0)
    return "No tool of this project's connectors is accepted yet. A person can accept them.";
  return "No tool has these words. Try other words, or an empty query for the first tools.";
};

/**
 * Calls a tool by the name that the agent has for it.
 *
 * @param tell hears that the call waits for a person, from time to time.
 * @returns its result. A refusal and a failure are results, too.
 */
export const callTool = Effect.fnUntraced(function* (
  caller: AgentCaller,
  { name, given }: { readonly name: string; readonly given: Arguments },
  tell: TellProgress,
) {
  const executor = yield* projectExecutor(caller.projectId);
  const slug = name.slice(0, Math.max(0, name.indexOf("_")));
  const connector = executor?.connectors.find((one) => one.slug === slug);
  if (executor === null || connector === undefined)
    return textResult(`No tool has the name ${name.slice(0, 64)}. Find tools with find_tools.`, true);
  const call = { caller, executor, connector, name, given };
  // Both read the store, and neither needs the other.
  const [decision, secrets] = yield* Effect.all([decide(call), projectRedactor(caller.projectId)], {
    concurrency: 2,
  });
  const row = yield* callRow(call, decision, secrets);
  const calls = yield* ExecutorCalls;
  if (decision.refused !== null) {
    const isWritten = yield* calls.deny(row, { message: decision.refused, limits: CALL_LIMITS });
    return textResult(isWritten ? onRecord(decision.refused, row.id) : decision.refused, true);
  }
  if (decision.policy === "ask") return yield* (yield* CallApproval).ask(row, given, tell);
  const beginning = yield* calls.begin(row, CALL_LIMITS);
  if (beginning !== "begun") return yield* refusedByLimit(beginning);
  return yield* record(row, { connector, decision, given });
});

interface Sending {
  readonly connector: Connector;
  readonly decision: ToBeSent;
  readonly given: Arguments;
}

/** Sends a call and writes its outcome, also if the agent goes away meanwhile. */
const record = (row: NewCall, { connector, decision, given }: Sending) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(restore(callServer(connector, decision, given)));
      const outcome = callOutcome(exit, connector, row.id);
      yield* write(row.id, outcome);
      return outcome.result;
    }),
  );
