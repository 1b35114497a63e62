/**
 * The decision about an agent's call of a connector's tool, and its row in the record. It is made when the agent asks,
 * and once more when a person approved the call.
 */
import { createHash } from "node:crypto";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { shownArguments } from "../../domain/connector/shown-arguments.ts";
import {
  isShallow,
  isUsable,
  toolPin,
  toolsByShownName,
  type CatalogueTool,
} from "../../domain/connector/catalogue.ts";
import {
  ruleFor,
  type Connector,
  type Executor,
  type SessionKind,
} from "../../domain/connector/connector.ts";
import { urlOrigin } from "../../domain/connector/connector-credential.ts";
import { operationRequest } from "../../domain/connector/http-operation.ts";
import { suspendedMessage } from "../../domain/connector/own-credential.ts";
import type { Redactor } from "../../domain/secret/redactor.ts";
import type { SessionOwner } from "../../connectors/port.ts";
import { Connectors } from "../../store/ports/connectors/connectors.ts";
import type { CallLimits, NewCall } from "../../store/ports/connectors/executor-calls.ts";
import { openCredential, type Credential } from "./credentials.ts";
import { ownCredentials } from "./own-credentials.ts";
import { catalogueFor, serverTarget } from "./connectors.ts";
import { sessionOwner } from "./server-sessions.ts";
import { newUuid } from "../entropy.ts";
import { connectorPage } from "../page-address.ts";

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
/** A text as a result. */
export const textResult = (text: string, isError = false): AgentResult => ({
  content: [{ type: "text", text }],
  isError,
});

/** A sentence for the agent about a call that is on record. By its id, a person finds it there. */
export const onRecord = (text: string, id: string): string => `${text} The call's id is ${id}.`;

/** A call that may be sent. */
export interface ToBeSent {
  readonly refused: null;
  /** Whether a person must approve the call. */
  readonly policy: "allow" | "ask";
  readonly rule: string;
  readonly pin: string;
  readonly tool: CatalogueTool;
  readonly credential: Credential;
  readonly protocol: string;
  /** The owner of a session at the connector's server. */
  readonly owner: SessionOwner;
}

/** The decision about a call: refused with a sentence, or to be sent. */
export type Decision =
  | ToBeSent
  | {
      readonly refused: string;
      readonly rule: string | null;
      readonly pin: string | null;
      readonly tool: string;
    };

export interface ToolRequest {
  readonly caller: AgentCaller;
  readonly executor: Executor;
  readonly connector: Connector;
  /** The tool's name as the agent wrote it. */
  readonly name: string;
  readonly given: Arguments;
}

/** Why the arguments do not fit into the tool's request. If null, they do, or the server decides. */
const findMisfit = (connector: Connector, { request }: CatalogueTool, args: Arguments): string | null => {
  if (request === undefined) return null;
  const sendable = operationRequest(
    serverTarget(connector, { credential: null, protocol: null }),
    request,
    args,
  );
  return Result.isFailure(sendable) ? sendable.failure : null;
};

const callingSession = ({ sessionId, userId, startedBy }: AgentCaller) =>
  ({ id: sessionId, createdBy: userId, origin: startedBy === "trigger" ? "trigger" : "session" }) as const;

/** Everything up to the limits (executor.ts X2). */
export const decide = Effect.fnUntraced(function* ({
  caller,
  executor,
  connector,
  name,
  given,
}: ToolRequest) {
  const { slug } = connector;
  const refuse = (reason: string, about: { tool?: string; rule?: string; pin?: string } = {}): Decision => ({
    refused: reason,
    tool: about.tool ?? name.slice(0, 64),
    rule: about.rule ?? null,
    pin: about.pin ?? null,
  });
  if (connector.credential === "user" && caller.startedBy === "trigger")
    return refuse(
      `The connector ${slug} uses the own credential of a person. A trigger's session acts for no person, so it cannot use it.`,
    );
  if (!connector.sessions.includes(caller.startedBy))
    return refuse(`The connector ${slug} is not open to sessions that a ${caller.startedBy} started.`);
  const catalogue = catalogueFor(connector, yield* (yield* Connectors).catalogue(caller.projectId, slug));
  const latest = catalogue?.latest ?? null;
  const tool = latest === null ? undefined : toolsByShownName(slug, latest.catalogue).get(name);
  if (latest === null || tool === undefined)
    return refuse(`No tool has the name ${name.slice(0, 64)}. Find tools with find_tools.`);
  const pin = toolPin(tool);
  if (!isUsable(catalogue?.accepted?.catalogue ?? null, tool))
    return refuse(
      `The tool ${tool.name} of ${slug} is new or was changed, and no person has accepted it yet. A person can accept it: platform connectors accept ${slug}.`,
      { tool: tool.name, pin },
    );
  const { policy, rule } = ruleFor(executor, connector, tool.name);
  const about = { tool: tool.name, pin, rule };
  if (policy === "deny") return refuse(`The tool ${tool.name} of ${slug} is denied by platform.toml.`, about);
  if (!isShallow(given) || Buffer.byteLength(JSON.stringify(given)) > ARGUMENTS_MAX_BYTES)
    return refuse(`The arguments are larger than ${ARGUMENTS_MAX_BYTES} bytes, or too deeply nested.`, about);
  const misfit = findMisfit(connector, tool, given);
  if (misfit !== null) return refuse(misfit, about);
  const own = connector.credential === "user" ? yield* ownCredentials(callingSession(caller)) : "no_person";
  if (own !== "no_person" && "suspension" in own)
    return refuse(suspendedMessage(`The connector ${slug}`, own.suspension), about);
  const openResult = yield* openCredential(caller.projectId, connector, caller.userId);
  if (openResult.missing !== null) {
    const page = connector.credential === "user" ? yield* connectorPage(caller.projectId, slug) : "";
    return refuse(`${openResult.missing}${page}`, about);
  }
  const { protocol } = latest;
  return {
    refused: null,
    policy,
    rule,
    pin,
    tool,
    credential: openResult.credential,
    protocol,
    owner: sessionOwner(caller, connector, openResult.credential),
  } satisfies Decision;
});

/** The row of a call to a connector. */
export const callRow = ({ caller, connector, given }: ToolRequest, decision: Decision, secrets: Redactor) => {
  const { refused, rule, pin, tool } = decision;
  return newRow(
    { caller, given, secrets },
    {
      connector: connector.slug,
      tool: refused === null ? tool.name : tool,
      origin: urlOrigin(connector.url),
      pin,
      rule,
    },
  );
};

/** The row of a call, with the beginning of its arguments. Secrets, and fields that look like secrets, are masked. */
export const newRow = Effect.fnUntraced(function* (
  { caller, given, secrets }: Pick<ToolRequest, "caller" | "given"> & { readonly secrets: Redactor },
  about: Pick<NewCall, "connector" | "tool" | "origin" | "pin" | "rule">,
) {
  const shallowArguments = isShallow(given) ? given : {};
  const text = JSON.stringify(shallowArguments);
  return {
    id: yield* newUuid,
    ...caller,
    ...about,
    argumentsDigest: createHash("sha256").update(text).digest("hex"),
    argumentsBytes: Buffer.byteLength(text),
    argumentsPreview: secrets
      .redactBeginning(JSON.stringify(shownArguments(secrets, shallowArguments)), PREVIEW_LENGTH)
      .toWellFormed(),
    at: yield* Clock.currentTimeMillis,
  } satisfies NewCall;
});
