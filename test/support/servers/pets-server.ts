/** An HTTP API of pets, described by pets.yaml. It records what it gets, and answers as a test says. */
import { readFileSync } from "node:fs";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export const PETS = readFileSync(new URL("pets.yaml", import.meta.url), "utf8");

export interface ReceivedRequest {
  readonly method: string;
  /** The path and the query as they came. */
  readonly target: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

type Answer = (request: ReceivedRequest, response: ServerResponse) => void;

export interface PetsServer {
  readonly origin: string;
  /** The base of the API. */
  readonly url: string;
  /** The description that the server offers at /openapi.yaml. */
  description: string;
  readonly requests: ReceivedRequest[];
  /** In place of the pets. */
  answer: Answer | null;
  readonly close: () => Promise<void>;
}

interface Pet {
  readonly id: number;
  readonly name: string;
  readonly kind: string;
}

/** Writes JSON. */
export const json = (response: ServerResponse, value: unknown, status = 200): void => {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  response.end(JSON.stringify(value));
};

export const startPetsServer = async (): Promise<PetsServer> => {
  const pets = new Map<number, Pet>([
    [1, { id: 1, name: "Tom", kind: "cat" }],
    [2, { id: 2, name: "Rex", kind: "dog" }],
  ]);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const self: PetsServer = {
    origin,
    url: `${origin}/api`,
    description: PETS,
    requests: [],
    answer: null,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  const serve: Answer = ({ method, target, body }, response) => {
    const { pathname, searchParams } = new URL(target, origin);
    if (pathname === "/openapi.yaml") {
      response.writeHead(200, { "content-type": "application/yaml" });
      return void response.end(self.description);
    }
    const id = /^\/api\/pets\/(\d+)$/.exec(pathname)?.[1];
    const pet = pets.get(Number(id));
    if (pathname === "/api/pets" && method === "GET") {
      const kinds = searchParams.get("kind")?.split(",");
      const found = [...pets.values()].filter(({ kind }) => kinds?.includes(kind) ?? true);
      return json(response, found.slice(0, Number(searchParams.get("limit") ?? 20)));
    }
    if (pathname === "/api/pets" && method === "POST") {
      const next = { kind: "cat", ...(JSON.parse(body) as object), id: pets.size + 1 } as Pet;
      pets.set(next.id, next);
      return json(response, next, 201);
    }
    if (pet === undefined) return json(response, { error: "There is no pet with this id." }, 404);
    if (method === "DELETE") return void response.writeHead(204).end();
    json(response, pet);
  };
  server.on("request", (request, response) => {
    void text(request).then((body) => {
      const { method = "", url = "", headers } = request;
      const received = { method, target: url, headers, body };
      self.requests.push(received);
      (self.answer ?? serve)(received, response);
    });
  });
  return self;
};
