/**
 * What others rely on: the OpenAPI document of the running service, and the routes with their privilege. `vitest -u` writes them again; read the difference afterwards.
 */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HttpApi, HttpApiSchema } from "effect/http-api";
import * as Schema from "effect/Schema";
import { Api, EXAMPLE_PARTS, examples, ROUTES } from "../../src/assembly/api.ts";
import type { TestService } from "../support/service/service.ts";
import { shareService } from "../support/service/shared.ts";
import { differences, recordText } from "./openapi-record.ts";

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary?: string;
  readonly "x-codeSamples"?: readonly { readonly source: string }[];
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { schema: unknown }>> }>
  >;
}
interface Document extends Readonly<Record<string, unknown>> {
  readonly openapi: string;
  readonly security: unknown;
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly securitySchemes: Readonly<Record<string, unknown>> };
}

/** Fails where the schema refuses the value, or where the value has a field that the schema does not know. */
const decodes = (id: string, schema: Schema.Top, value: unknown): void => {
  const decoded = Schema.decodeUnknownExit(schema as Schema.Decoder<unknown>)(value, {
    onExcessProperty: "error",
    errors: "all",
  });
  expect([id, String(decoded)]).toEqual([id, expect.stringMatching(/^Success/)]);
};

/** Each field of JSON with a value that is neither a record nor a list. */
const leaves = (value: unknown, name = ""): readonly (readonly [string, unknown])[] => {
  if (Array.isArray(value)) return value.flatMap((item) => leaves(item, name));
  if (typeof value !== "object" || value === null) return [[name, value]];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, key));
};

let service: TestService;
let text = "";
let document: Document;
beforeAll(async () => {
  service = await shareService();
  ({ text } = await service.request("GET", "/openapi.json", { token: null }));
  document = JSON.parse(text) as Document;
});
afterAll(() => service.close());

const RECORD = fileURLToPath(new URL("../golden/openapi.json", import.meta.url));
const expectGolden = (name: string, value: unknown): Promise<void> =>
  expect(`${JSON.stringify(value, null, 2)}\n`).toMatchFileSnapshot(`../golden/${name}`);

const operations = (): readonly (readonly [string, string, Operation])[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [path, method, operation] as const),
  );

describe("the routes", () => {
  const lines = ROUTES.map(({ method, pattern, privilege }) => `${method} ${pattern}: ${privilege}`);

  it("and their privileges match the recorded ones", async () => {
    await expectGolden("routes.json", lines.toSorted());
  });
});

describe("the OpenAPI document", () => {
  it("matches the recorded one", async () => {
    const matched = expect(recordText(document)).toMatchFileSnapshot(RECORD);
    await matched.catch(async () => {
      // The snapshot's own message would be whole lines, which are long.
      const lines = differences(JSON.parse(await readFile(RECORD, "utf8")), document);
      const count = lines.length === 0 ? "No field, only the order or the form," : `${lines.length} fields`;
      throw new Error([`${count} differ from the recorded document:`, ...lines.slice(0, 50)].join("\n"));
    });
  });

  it("is OpenAPI 3.1, and every reference in it resolves", () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    const references = [...text.matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, pointer = ""]) => pointer);
    expect(references.length).toBeGreaterThan(50);
    for (const pointer of new Set(references)) {
      const found = pointer
        .split("/")
        .reduce<unknown>((node, key) => (node as Readonly<Record<string, unknown>>)[key], document);
      expect([pointer, typeof found]).toEqual([pointer, "object"]);
    }
  });

  it("describes each operation, and how to request it", () => {
    for (const [path, method, operation] of operations()) {
      expect([path, method, operation.summary]).toEqual([path, method, expect.stringMatching(/^[A-Z].+\.$/)]);
      const [sample] = operation["x-codeSamples"] ?? [];
      expect([path, method, sample?.source]).toEqual([path, method, expect.stringMatching(/^(?:curl|git) /)]);
      expect(sample?.source).not.toMatch(/[{}]\w+\}/);
    }
  });

  it("shows examples that its schemas accept, for each request and answer with a body", () => {
    const { operations: known } = examples();
    HttpApi.reflect(Api, {
      onGroup: () => undefined,
      onEndpoint: ({ endpoint, group, successes }) => {
        const id = `${group.identifier}.${endpoint.identifier}`;
        const payloads = [...endpoint.payload.values()].flatMap(({ schemas }) =>
          // Null stands for no body.
          [...schemas].filter(({ ast }) => ast._tag !== "Null"),
        );
        expect([id, known[id]?.request !== undefined]).toEqual([id, payloads.length > 0]);
        for (const schema of payloads) decodes(id, schema, known[id]?.request);
        for (const [status, schemas] of successes) {
          for (const schema of schemas.filter(({ ast }) => !HttpApiSchema.isNoContent(ast)))
            decodes(id, schema, known[id]?.responses[status]);
        }
      },
    });
    const written = EXAMPLE_PARTS.flatMap((part) => Object.keys(part.operations));
    expect(written.toSorted()).toEqual(Object.keys(known).toSorted());
  });

  it("shows examples that say something in each field", () => {
    const silent = Object.entries(examples().operations).flatMap(([id, { request, responses }]) =>
      leaves([request, responses])
        .filter(([name, value]) => value === name.replaceAll("_", " "))
        .map(([name]) => `${id}: ${name}`),
    );
    expect(silent).toEqual([]);
  });

  it("shows examples of what the address names", () => {
    const { operations: known } = examples();
    let seen = 0;
    for (const [, , { operationId, "x-codeSamples": samples }] of operations()) {
      const [, pid, sid] =
        /projects\/([^/"]+)(?:\/sessions\/([^/"]+))?/.exec(samples?.[0]?.source ?? "") ?? [];
      const fields = leaves(known[operationId]?.responses);
      for (const [name, id] of [
        ["project_id", pid],
        ["session_id", sid],
      ] as const) {
        const values = fields
          .filter(([field, value]) => field === name && value !== null)
          .map(([, value]) => value);
        if (id === undefined || values.length === 0) continue;
        seen += 1;
        expect([operationId, [...new Set(values)]]).toEqual([operationId, [id]]);
      }
    }
    expect(seen).toBeGreaterThan(20);
  });

  it("names each operation once, with a known tag and every parameter of its path", () => {
    const ids = operations().map(([, , { operationId }]) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const tags = new Set(document.tags.map(({ name }) => name));
    for (const [path, , operation] of operations()) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const told = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      expect([path, told.map(({ name }) => name).toSorted()]).toEqual([path, named.toSorted()]);
      expect(operation.tags.every((tag) => tags.has(tag))).toBe(true);
    }
  });

  it("says which token opens which operation", () => {
    expect(document.security).toEqual([{ token: [] }]);
    expect(Object.keys(document.components.securitySchemes)).toEqual(["token", "git"]);
    const open = operations().filter(([, , { security }]) => security?.length === 0);
    expect(open.map(([path]) => path)).toEqual([
      "/v1/device-logins",
      "/v1/device-logins/token",
      "/v1/webhooks/projects/{pid}/{slug}",
      "/healthz",
      "/readyz",
    ]);
  });

  it("gives every error the one shape, but for OAuth's own errors", () => {
    for (const [path, method, { responses }] of operations()) {
      for (const [status, response] of Object.entries(responses)) {
        if (!/^[45]/.test(status) || path === "/readyz") continue;
        if (status === "400" && /^\/v1\/device-logins(?:\/token)?$/.test(path)) continue;
        expect([path, method, status, response.content]).toEqual([
          path,
          method,
          status,
          { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
        ]);
      }
    }
  });

  it("contains every route except the page's, the nodes' and its own", () => {
    const told = new Set(operations().map(([path, method]) => `${method.toUpperCase()} ${path}`));
    const own = /^\/(?:docs(?:\/.*)?|dashboard\/.*|openapi\.json)?$/;
    const expected = ROUTES.filter(
      ({ pattern, privilege }) => !own.test(pattern) && privilege !== "join_nodes",
    ).map(({ method, pattern }) => {
      const path = pattern.replaceAll(/:([a-z]+)/gi, "{$1}").replace(/\*$/, "{path}");
      return `${method === "*" ? "X-ANY-METHOD" : method} ${path}`;
    });
    expect(expected.toSorted()).toEqual([...told].toSorted());
  });

  it("has a page that needs no other host", async () => {
    const page = await service.request("GET", "/docs", { token: null });
    expect(page.headers["content-type"]).toContain("text/html");
    expect(page.text).not.toMatch(/<(?:script|link|img|iframe)[^>]+(?:src|href)="https?:/);
  });
});
