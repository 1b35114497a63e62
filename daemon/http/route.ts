/**
 * Decides where a request goes, once, on the raw request target (spec.md 4.3, threats.md X01 to X08). Nothing is
 * decoded or normalised before or after: the forwarded target is byte for byte the checked one.
 *
 *  D1 Health is open on exactly `/platform/health` by GET or HEAD. Every other route requires a signed context.
 *  D2 No host is ever taken from a request: targets are ports on 127.0.0.1.
 */
import { readQuery, type WorkspaceRead } from "../workspace/reading.ts";

import type { Refusal } from "./answer.ts";
import type { SavingCall } from "../saving/surface.ts";
import { terminalWish, type TerminalWish } from "../../src/domain/session/terminal.ts";

export type Route =
  /** `isHeld`: it may be answered later, when the boot is over or has trouble. */
  | { readonly kind: "health"; readonly isHeld: boolean }
  | { readonly kind: "abort" }
  /** The sandbox stays after all: messages are taken again. */
  | { readonly kind: "continue" }
  /** A waiting sandbox gets its session (boot/standby.ts). */
  | { readonly kind: "claim" }
  /** A waiting sandbox gets the project's commit before it gets its session. */
  | { readonly kind: "prepare"; readonly commit: string }
  | { readonly kind: "logs" }
  /** A command of a person (terminals/). `DELETE` ends it. */
  | { readonly kind: "terminal"; readonly wish: TerminalWish }
  | { readonly kind: "ports" }
  /** `after`: the number of the last known turn. */
  | { readonly kind: "turn"; readonly after: number }
  /** `after`: the number of the last known version of an item. */
  | { readonly kind: "conversation"; readonly after: number }
  /** The whole output of a tool. `item`: the item's native id. */
  | { readonly kind: "output"; readonly item: string }
  | { readonly kind: "workspace"; readonly read: WorkspaceRead }
  | { readonly kind: "control"; readonly name: ControlName }
  /** Saved work: calls of the service alone. */
  | { readonly kind: "saving"; readonly call: SavingCall }
  | { readonly kind: "steering"; readonly name: SteeringName }
  /** `id`: a UUID. */
  | { readonly kind: "attachment"; readonly id: string }
  | { readonly kind: "runtime"; readonly path: string }
  | { readonly kind: "port"; readonly port: number; readonly path: string }
  | { readonly kind: "refused"; readonly refusal: Refusal };

/** Control paths that take a JSON body (api.md 7). */
export type ControlName = "refresh" | "env" | "withdraw";

/** Paths by which people steer the agent. All but `models` take a JSON body. */
export type SteeringName = "messages" | "interrupt" | "answer" | "models";

/** A request's method and target, as Node provides them. */
export interface Target {
  readonly method: string;
  readonly url: string;
}

const CONTROLS: ReadonlyMap<string, ControlName> = new Map([
  ["/platform/refresh", "refresh"],
  ["/platform/env", "env"],
  ["/platform/withdraw", "withdraw"],
]);
const SAVING: ReadonlyMap<string, SavingCall> = new Map([
  ["/platform/save/list", "list"],
  ["/platform/save/read", "read"],
  ["/platform/restore", "restore"],
  ["/platform/retire", "retire"],
]);
/** Paths without a query. */
const PLAIN: ReadonlyMap<
  string,
  {
    readonly kind: "abort" | "claim" | "continue" | "logs" | "ports";
    readonly method: "GET" | "POST";
    readonly use: string;
  }
> = new Map([
  ["/platform/abort", { kind: "abort", method: "POST", use: "abort" }],
  ["/platform/continue", { kind: "continue", method: "POST", use: "take messages again" }],
  ["/platform/claim", { kind: "claim", method: "POST", use: "claim" }],
  ["/platform/logs", { kind: "logs", method: "GET", use: "read the log" }],
  ["/platform/ports", { kind: "ports", method: "GET", use: "read the ports" }],
]);
const STEERING: ReadonlyMap<string, SteeringName> = new Map([
  ["/platform/messages", "messages"],
  ["/platform/interrupt", "interrupt"],
  ["/platform/answer", "answer"],
]);
const WORKSPACE: ReadonlyMap<string, WorkspaceRead["of"]> = new Map([
  ["/platform/workspace/changes", "changes"],
  ["/platform/workspace/diff", "diff"],
  ["/platform/workspace/files", "files"],
]);
const ATTACHMENT = /^\/platform\/attachments\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const PORT = /^[1-9][0-9]{0,4}$/;
const MAX_PORT = 65_535;

const refusalRoute = (status: Refusal["status"], code: Refusal["code"], error: string): Route => ({
  kind: "refused",
  refusal: { status, code, error },
});

/** `blockedPorts` are ports that `/proxy/{port}` never reaches: the daemon's, the runtime's, the forwarder's. */
export const decideRoute = ({ method, url }: Target, blockedPorts: readonly number[]): Route => {
  if (!url.startsWith("/")) return refusalRoute(400, "bad_request", "The request target must be a path.");
  const end = url.indexOf("?");
  const path = end === -1 ? url : url.slice(0, end);
  if (path === "/platform" || path.startsWith("/platform/")) return controlRoute(method, path, url);
  if (method === "TRACE") return refusalRoute(405, "method_not_allowed", "TRACE is not supported.");
  if (path.startsWith("/proxy/")) return portRoute(url, blockedPorts);
  return { kind: "runtime", path: url };
};

const controlRoute = (method: string, path: string, url: string): Route => {
  if (path === "/platform/health") {
    if (method === "GET" || method === "HEAD")
      return { kind: "health", isHeld: url.slice(path.length) === "?until=booted" };
    return refusalRoute(405, "method_not_allowed", "Use GET or HEAD to read the health.");
  }
  const plain = PLAIN.get(path);
  if (plain !== undefined) {
    if (method === plain.method) return { kind: plain.kind };
    return refusalRoute(405, "method_not_allowed", `Use ${plain.method} to ${plain.use}.`);
  }
  if (path === "/platform/checkout") {
    const [, commit = null] = /^\?commit=([0-9a-f]{40})$/.exec(url.slice(path.length)) ?? [];
    if (method !== "PUT") return refusalRoute(405, "method_not_allowed", "Use PUT to give a commit.");
    if (commit === null) return refusalRoute(400, "bad_request", "commit must be the id of a commit.");
    return { kind: "prepare", commit };
  }
  if (path === "/platform/terminal") {
    if (method !== "GET" && method !== "DELETE")
      return refusalRoute(405, "method_not_allowed", "Use GET to open a terminal, or DELETE to end it.");
    const wish = terminalWish(new URLSearchParams(url.slice(path.length)));
    if ("message" in wish) return refusalRoute(400, "bad_request", `\`${wish.path}\` ${wish.message}.`);
    return { kind: "terminal", wish };
  }
  if (path === "/platform/turn") {
    if (method === "GET") return routeAfter("turn", "a turn", url.slice(path.length));
    return refusalRoute(405, "method_not_allowed", "Use GET to read the last turn.");
  }
  if (path === "/platform/conversation") {
    if (method === "GET") return routeAfter("conversation", "a version", url.slice(path.length));
    return refusalRoute(405, "method_not_allowed", "Use GET to read the conversation.");
  }
  if (path === "/platform/output") {
    const item = new URLSearchParams(url.slice(path.length)).get("item") ?? "";
    if (method !== "GET") return refusalRoute(405, "method_not_allowed", "Use GET to read an output.");
    if (item === "") return refusalRoute(400, "bad_request", "item must be the id of an item.");
    return { kind: "output", item };
  }
  if (path === "/platform/models") {
    if (method === "GET") return { kind: "steering", name: "models" };
    return refusalRoute(405, "method_not_allowed", "Use GET to read the models.");
  }
  const read = WORKSPACE.get(path);
  if (read !== undefined) return workspaceRoute(method, read, url.slice(path.length + 1));
  const [, id = null] = ATTACHMENT.exec(path) ?? [];
  if (id !== null) {
    if (method === "PUT") return { kind: "attachment", id };
    return refusalRoute(405, "method_not_allowed", "Use PUT to store an attachment.");
  }
  const saving = SAVING.get(path);
  if (saving !== undefined && method === "POST") return { kind: "saving", call: saving };
  const control = CONTROLS.get(path);
  const steering = STEERING.get(path);
  if (control === undefined && steering === undefined && saving === undefined)
    return refusalRoute(404, "not_found", "Control path not found.");
  if (method === "POST" && control !== undefined) return { kind: "control", name: control };
  if (method === "POST" && steering !== undefined) return { kind: "steering", name: steering };
  return refusalRoute(405, "method_not_allowed", "Use POST for this control path.");
};

const workspaceRoute = (method: string, of: WorkspaceRead["of"], query: string): Route => {
  if (method !== "GET") return refusalRoute(405, "method_not_allowed", "Use GET to read the workspace.");
  const read = readQuery(of, query);
  if (read !== null) return { kind: "workspace", read };
  return refusalRoute(400, "bad_request", "The query must name two commits, or a path below the workspace.");
};

/** `?after={number}`. Absent: 0. */
const routeAfter = (kind: "turn" | "conversation", what: string, query: string): Route => {
  const [, after = query === "" ? "0" : null] = /^\?after=(\d{1,15})$/.exec(query) ?? [];
  return after === null
    ? refusalRoute(400, "bad_request", `after must be the number of ${what}.`)
    : { kind, after: Number(after) };
};

/** `/proxy/{port}` and everything below it. The port must be plain decimal (threats.md fact 4). */
const portRoute = (url: string, blockedPorts: readonly number[]): Route => {
  const [, digits = "", rest = ""] = /^\/proxy\/([^/?]*)(.*)$/s.exec(url) ?? [];
  const port = PORT.test(digits) ? Number(digits) : 0;
  if (port === 0 || port > MAX_PORT) {
    return refusalRoute(400, "bad_port", "The port must be a decimal number from 1 to 65535.");
  }
  if (blockedPorts.includes(port))
    return refusalRoute(403, "port_blocked", `Port ${port} is reserved for the platform.`);
  return { kind: "port", port, path: rest.startsWith("/") ? rest : `/${rest}` };
};
