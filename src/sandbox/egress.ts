/**
 * The egress proxy: the only way out of a `local` sandbox. Each sandbox has its own listener, so its socket identifies
 * the caller. It accepts plain HTTP in absolute form and CONNECT, streams both ways with back-pressure, stores nothing,
 * and answers each refusal with 403 and its reason.
 */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  createServer,
  request,
} from "node:http";
import { type Socket, connect, isIP } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { connect as connectTls } from "node:tls";
import { type Allowances, withoutBrackets } from "../ground/net/address.ts";
import { ownAddresses } from "../ground/net/own-addresses.ts";
import { type Connect, type Destination, dial, type Network } from "../ground/net/dial.ts";
import { NetFault, toFault } from "../ground/net/fault.ts";
import { Refusal, endToEndHeaders, reasonPhrase, refusalBody, refusalFor } from "./egress-messages.ts";
import {
  SERVICE_HOST,
  type EgressPolicy,
  type PlainRequest,
  type RequestRule,
  decideEgress,
  mayReach,
  registryAsked,
} from "./egress-policy.ts";
import { ServiceAddresses } from "./service-addresses.ts";
import { type ServiceTunnels, serviceTunnels } from "./egress-service.ts";
import { MODEL_HOST } from "../domain/sandbox/account-provider.ts";
import { passModel } from "./egress-models.ts";
import type { ServeModel } from "./model-door.ts";
import type { PackageProxy } from "./packages/proxy.ts";
import { joinStreams } from "./remote/channel.ts";

export interface EgressLimits {
  /** How many concurrent connections a sandbox may have. More are closed immediately. */
  readonly connections: number;
  /** Time limit to resolve and connect, in milliseconds. */
  readonly connectMs: number;
  /** Milliseconds without a byte in either direction after which a connection ends. */
  readonly idleMs: number;
}

export const EGRESS_LIMITS: EgressLimits = { connections: 512, connectMs: 10_000, idleMs: 900_000 };

export interface EgressOptions {
  readonly policy: EgressPolicy;
  readonly network?: Network;
  readonly limits?: EgressLimits;
  /** Answers requests to package registries, if the policy has some. */
  readonly packages?: Pick<PackageProxy, "serve"> | undefined;
  /** Answers calls to the account's own providers of models. Absent: it has none. */
  readonly models?: ServeModel | undefined;
  /** The addresses of this machine, which a sandbox does not reach even where they are public. */
  readonly own?: () => readonly string[];
  /** Gets each host that the policy, or the check of its addresses, refuses. */
  readonly refused?: (host: string, reason: string) => void;
}

/** Where to connect. */
interface Target {
  readonly host: string;
  readonly port: number;
  readonly allowances: Allowances;
  readonly tls: boolean;
  /** The name for the Host header and for TLS. Null means the client's own. */
  readonly name: string | null;
  /** If null, everything may be asked there. */
  readonly rule: RequestRule | null;
  readonly tunnel: "open" | "refused" | "read";
  /** The addresses behind the service's own names are closed, too (egress-policy.ts E5). */
  readonly avoidsService: boolean;
}

/** No list of an operator opens a private address to sandboxes. */
const PUBLIC: Allowances = { hosts: new Set() };

/** A tunnel ends each direction by itself. */
const connectTunnel: Connect = (host, port) => connect({ host, port, noDelay: true, allowHalfOpen: true });

const allowedTarget = (policy: EgressPolicy, host: string, port: number): Target => {
  const decision = decideEgress(policy, host, port);
  if (decision.kind === "refused") throw new Refusal(403, decision.reason);
  if (decision.kind === "public")
    return {
      host: decision.host,
      port,
      allowances: PUBLIC,
      tls: false,
      name: null,
      rule: null,
      tunnel: "open",
      avoidsService: !decision.isNamed,
    };
  const { origin } = decision;
  const tls = origin.protocol === "https:";
  const standard = tls ? 443 : 80;
  return {
    host: origin.hostname,
    port: origin.port === "" ? standard : Number(origin.port),
    allowances: { hosts: "every" },
    tls,
    name: decision.name,
    rule: decision.rule,
    tunnel: decision.tunnel,
    avoidsService: false,
  };
};

/** What a proxy knows of the service. */
interface Known {
  readonly service: ServiceAddresses;
}

const isResolved = (addresses: readonly string[], { reason }: NetFault): boolean =>
  reason._tag === "ForbiddenAddress" && reason.kind === "own" && addresses.includes(reason.address);

const connectTo = async (target: Target, options: EgressOptions & Known): Promise<Socket> => {
  const { host, port, allowances } = target;
  const { limits: { connectMs, idleMs } = EGRESS_LIMITS, own: machine = ownAddresses } = options;
  const { serviceHosts = [] } = options.policy;
  const service = target.avoidsService ? await options.service.resolve(serviceHosts) : [];
  const own = () => [...machine(), ...service];
  try {
    const socket = await dial(
      { host, port },
      { connect: connectTunnel, ...options.network, allowances: { own, ...allowances }, connectMs },
    );
    return socket.setTimeout(idleMs, () => socket.destroy());
  } catch (error) {
    if (error instanceof NetFault && isResolved(service, error))
      throw new Refusal(403, `the host has an address of this service: sandboxes use http://${SERVICE_HOST}`);
    if (allowances === PUBLIC || !(error instanceof NetFault)) throw error;
    // A sandbox does not learn the addresses of the operator's own hosts.
    throw new Refusal(502, `the host ${error.discreetWhy}`);
  }
};

/** @param plain null: a tunnel @throws Refusal */
const admit = (policy: EgressPolicy, { host, port }: Destination, plain: PlainRequest | null): Target => {
  const target = allowedTarget(policy, host, port);
  if (plain === null && target.tunnel !== "open")
    throw new Refusal(403, `${host} accepts plain requests, not CONNECT`);
  const refusal = plain === null ? null : (target.rule?.(plain.method, plain.path) ?? null);
  if (refusal !== null) throw new Refusal(403, refusal);
  return target;
};

/** Says which host is refused. @throws Refusal */
const reporting = async <A>({ refused }: EgressOptions, host: string, work: () => Promise<A>): Promise<A> => {
  try {
    return await work();
  } catch (error) {
    const refusal = refusalFor(error);
    if (refusal.status === 403) refused?.(host, refusal.message);
    throw refusal;
  }
};

/** Connects to an allowed host. @param plain null: a tunnel @throws Refusal */
const reach = (options: EgressOptions & Known, to: Destination, plain: PlainRequest | null) =>
  reporting(options, to.host, async () => {
    const target = admit(options.policy, to, plain);
    return { target, socket: await connectTo(target, options) };
  });

/** The server name for TLS. Addresses are not sent as names (RFC 6066, 3). */
const serverName = ({ name }: Target): { readonly servername?: string } => {
  const host = withoutBrackets((name ?? "").replace(/:\d+$/, ""));
  return host === "" || isIP(host) !== 0 ? {} : { servername: host };
};

/** The path as the client wrote it: its recipient may normalise it. */
const rawPath = (target: string, url: URL): string => {
  const start = target.indexOf("/", "http://".length);
  return start === -1 ? `/${url.search}` : target.slice(start);
};

const isModelHost = ({ host, port }: Destination): boolean => host === MODEL_HOST && port === 80;

/** A call of a model goes through the door: to a provider of the account, or else to the managed gateway, if the policy has one. */
const forwardToModel = async (
  options: EgressOptions & { readonly models: ServeModel },
  plain: PlainRequest,
  messages: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse },
): Promise<void> => {
  const { policy, models } = options;
  const call = { ...messages, path: plain.path };
  if (await passModel(models, { ...call, gateway: null })) return;
  const gateway = await reporting(options, MODEL_HOST, async () => {
    admit(policy, { host: MODEL_HOST, port: 80 }, plain);
    return new URL(policy.llmUpstream ?? "");
  });
  if (!(await passModel(models, { ...call, gateway }))) throw new Refusal(403, "the sandbox has ended");
};

/** @param written the URL in absolute form */
const forward = async (
  options: EgressOptions & Known,
  { incoming, written }: { readonly incoming: IncomingMessage; readonly written: string },
  outgoing: ServerResponse,
): Promise<void> => {
  const url = URL.canParse(written) ? new URL(written) : null;
  if (url === null || url.protocol !== "http:") {
    throw new Refusal(400, "this is a proxy. Send http:// URLs in absolute form, or CONNECT");
  }
  const path = rawPath(written, url);
  const plain = { url, method: incoming.method ?? "GET", path };
  const registry = registryAsked(options.policy, plain);
  if (registry !== null && options.packages !== undefined) {
    const mayAsk = (file: URL): boolean =>
      file.origin === registry.source.origin || mayReach(options.policy, file);
    return options.packages.serve({ ...registry, path, incoming, outgoing, mayAsk });
  }
  const to = { host: url.hostname, port: url.port === "" ? 80 : Number(url.port) };
  const { models } = options;
  if (models !== undefined && isModelHost(to))
    return forwardToModel({ ...options, models }, plain, { incoming, outgoing });
  const { target, socket } = await reach(options, to, plain);
  const headers = endToEndHeaders(incoming);
  // A body of unknown length stays framed for every method. Unframed, it would be read as another request.
  if (incoming.headers["transfer-encoding"] !== undefined) headers["transfer-encoding"] = "chunked";
  const upstream = request({
    createConnection: () => (target.tls ? connectTls({ socket, ...serverName(target) }) : socket),
    method: plain.method,
    path,
    headers: { ...headers, host: target.name ?? url.host },
  });
  const response = Promise.withResolvers<IncomingMessage>();
  upstream.on("response", response.resolve);
  upstream.on("error", (error) => response.reject(toFault(error, { host: url.hostname })));
  // When a client leaves, its upstream request ends.
  outgoing.on("close", () => upstream.destroy());
  pipeline(incoming, upstream).catch(() => upstream.destroy());
  const answer = await response.promise;
  outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage, endToEndHeaders(answer));
  await pipeline(answer, outgoing);
};

/** Splits `host:port` of a CONNECT request. An IPv6 address is in brackets. */
const authority = (text: string): Destination => {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:/?#@[\]\s]+):(\d{1,5})$/.exec(text);
  if (match?.[1] === undefined) throw new Refusal(400, "CONNECT needs host:port");
  return { host: withoutBrackets(match[1]), port: Number(match[2]) };
};

const ESTABLISHED = "HTTP/1.1 200 Connection established\r\n\r\n";

const tunnel = async (
  {
    options,
    service,
    models,
  }: {
    readonly options: EgressOptions & Known;
    readonly service: ServiceTunnels;
    readonly models: ServiceTunnels;
  },
  wantedHost: string,
  client: Duplex,
): Promise<void> => {
  const { host, port } = authority(wantedHost);
  if (options.models !== undefined && isModelHost({ host: host.toLowerCase(), port })) {
    client.write(ESTABLISHED);
    models.accept(client);
    return;
  }
  const decision = decideEgress(options.policy, host, port);
  if (decision.kind === "origin" && decision.tunnel === "read") {
    client.write(ESTABLISHED);
    service.accept(client);
    return;
  }
  const { socket: upstream } = await reach(options, { host, port }, null);
  if (client.destroyed) {
    upstream.destroy();
    return;
  }
  client.write(ESTABLISHED);
  for (const end of [client, upstream]) end.on("timeout", () => end.destroy());
  joinStreams(client, upstream);
};

/** @param host as the client asked for it. Null if it asked for no tunnel. */
const refuseTunnel = (client: Duplex, refusal: Refusal, host: string | null = null): void => {
  const body = refusalBody(refusal);
  client.end(
    `HTTP/1.1 ${refusal.status} ${reasonPhrase(refusal, host)}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
};

/** A listening proxy. */
export interface Egress {
  /** Applies this policy from now on. Open connections stay open. */
  readonly follow: (policy: EgressPolicy) => void;
  /** Stops listening and ends every connection. */
  readonly close: () => void;
}

const listenOn = async (server: Server, path: string): Promise<void> => {
  server.listen({ path, readableAll: true, writableAll: true });
  await once(server, "listening");
};

/**
 * Opens the proxy on a unix socket that every uid may connect to. The socket's directory decides who reaches it. A
 * socket that a dead service left behind is replaced.
 */
export const openEgress = async (path: string, options: EgressOptions): Promise<Egress> => {
  let { policy } = options;
  const server = egressServer({
    ...options,
    service: new ServiceAddresses(options.network),
    get policy() {
      return policy;
    },
  });
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
  });
  await listenOn(server, path).catch(async (error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    await rm(path, { force: true });
    await listenOn(server, path);
  });
  return {
    follow: (next) => {
      policy = next;
    },
    close: () => {
      server.close();
      // The server no longer tracks tunnels, so they are closed here.
      for (const socket of open) socket.destroy();
    },
  };
};

const SERVICE = `http://${SERVICE_HOST}`;
const MODELS = `http://${MODEL_HOST}`;

const egressServer = (options: EgressOptions & Known): Server => {
  const { connections, idleMs } = options.limits ?? EGRESS_LIMITS;
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 0, keepAliveTimeout: 5_000 });
  server.maxConnections = connections;
  server.timeout = idleMs;
  const passing =
    (prefix: string): RequestListener =>
    (incoming, outgoing) => {
      forward(options, { incoming, written: `${prefix}${incoming.url ?? ""}` }, outgoing).catch(
        (error: unknown) => {
          if (outgoing.headersSent) return outgoing.destroy();
          const refusal = refusalFor(error);
          const host = URL.parse(`${prefix}${incoming.url ?? ""}`)?.hostname ?? null;
          const headers = { "content-type": "application/json", connection: "close" };
          outgoing.writeHead(refusal.status, reasonPhrase(refusal, host), headers);
          return outgoing.end(refusalBody(refusal));
        },
      );
    };
  server.on("request", passing(""));
  const service = serviceTunnels({
    forward: passing(SERVICE),
    connect: async ({ method = "GET", url: path = "" }) => {
      const url = new URL(`${SERVICE}${path}`);
      return (await reach(options, { host: url.hostname, port: 80 }, { url, method, path })).socket;
    },
    refuse: (client, error) => refuseTunnel(client, refusalFor(error), SERVICE_HOST),
  });
  const models = serviceTunnels({
    forward: passing(MODELS),
    connect: () => Promise.reject(new Refusal(403, "no connection to a model is upgraded")),
    refuse: (client, error) => refuseTunnel(client, refusalFor(error), MODEL_HOST),
  });
  service.server.timeout = idleMs;
  models.server.timeout = idleMs;
  server.on("connect", (incoming, client, head) => {
    client.on("error", () => client.destroy());
    if (head.length > 0) client.unshift(head);
    tunnel({ options, service, models }, incoming.url ?? "", client).catch((error: unknown) =>
      refuseTunnel(client, refusalFor(error), (incoming.url ?? "").replace(/:\d+$/, "")),
    );
  });
  // Upgrades use CONNECT. In absolute form, the proxy would have to take part in them.
  server.on("upgrade", (_incoming, client: Duplex) => {
    refuseTunnel(client, new Refusal(400, "open a tunnel with CONNECT to upgrade"));
  });
  return server;
};
