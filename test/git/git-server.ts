/**
 * A server for the tests that mounts the smart-HTTP functions as the service does: it reads the path, takes the
 * password for the user, and streams. It records the targets, passwords and headers of requests for assertions.
 */
import * as NodeStream from "@effect/platform-node/NodeStream";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Stream from "effect/Stream";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { GitError } from "../../src/git/port.ts";
import type { WritePolicy } from "../../src/git/server/ref-policy.ts";
import { parseGitPath, type SmartHttp } from "../../src/git/server/smart-http.ts";

export interface GitServer {
  readonly url: (projectId: string, password: string) => string;
  readonly address: string;
  /** Every request: method, target, content encoding, status. */
  readonly heard: {
    method: string;
    target: string;
    encoding: string | undefined;
    protocol: string | undefined;
  }[];
  /** Ends of the response bodies. */
  readonly ends: ("clean" | "broken")[];
  readonly close: () => Promise<void>;
}

const header = (request: IncomingMessage, name: string): string | undefined => {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(",") : value;
};

const passwordOf = (request: IncomingMessage): string => {
  const [, encoded = ""] = /^Basic (.+)$/.exec(request.headers.authorization ?? "") ?? [];
  return Buffer.from(encoded, "base64").toString("utf8").split(":")[1] ?? "";
};

const pump = (stream: Stream.Stream<Uint8Array, GitError>, response: ServerResponse) =>
  Stream.runForEach(stream, (chunk) =>
    Effect.promise(async () => {
      if (!response.write(chunk)) await once(response, "drain");
    }),
  );

const respond = (
  http: SmartHttp,
  policies: ReadonlyMap<string, WritePolicy>,
  server: Pick<GitServer, "ends">,
) =>
  Effect.fnUntraced(function* (request: IncomingMessage, response: ServerResponse) {
    const route = parseGitPath(request.url ?? "");
    const policy = policies.get(passwordOf(request));
    if (route === null) return void response.writeHead(404).end();
    if (policy === undefined) return void response.writeHead(401, { "www-authenticate": "Basic" }).end();
    if (route.service === null) return void response.writeHead(403).end();
    const call = {
      repository: { projectId: route.projectId },
      service: route.service,
      policy,
      mayFetchSaves: policy.writer.kind === "user",
      protocol: header(request, "git-protocol"),
      disconnect: Effect.sync(() => void request.socket.destroy()),
    };
    const answer = yield* Effect.result(
      route.kind === "advertise"
        ? http.advertise(call)
        : http.serve({
            ...call,
            body: NodeStream.fromReadable({ evaluate: () => request }),
            contentType: header(request, "content-type"),
            contentEncoding: header(request, "content-encoding"),
          }),
    );
    if (answer._tag === "Failure") return void response.writeHead(404).end(answer.failure.message);
    response.writeHead(answer.success.status, answer.success.headers);
    yield* pump(answer.success.body, response).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          server.ends.push(Exit.isSuccess(exit) ? "clean" : "broken");
          if (Exit.isSuccess(exit)) response.end();
          else response.destroy();
        }),
      ),
      Effect.ignore,
    );
  });

/** Serves `http` on a free port of the loopback; a password's policy is looked up in `policies`. */
export const startGitServer = async (
  http: SmartHttp,
  policies: ReadonlyMap<string, WritePolicy>,
): Promise<GitServer> => {
  const heard: GitServer["heard"] = [];
  const ends: GitServer["ends"] = [];
  const handle = respond(http, policies, { ends });
  const server = createServer((request, response) => {
    heard.push({
      method: request.method ?? "",
      target: request.url ?? "",
      encoding: header(request, "content-encoding"),
      protocol: header(request, "git-protocol"),
    });
    const fiber = Effect.runFork(handle(request, response));
    response.once("close", () => {
      if (!response.writableFinished) Effect.runFork(Fiber.interrupt(fiber));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // oxlint-disable-next-line typescript/consistent-type-assertions -- a TCP server's address is an object
  const { port } = server.address() as AddressInfo;
  const address = `127.0.0.1:${port}`;
  return {
    address,
    heard,
    ends,
    url: (projectId, password) => `http://git:${password}@${address}/v1/git/${projectId}.git`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};
