/**
 * The page at `/docs`: the OpenAPI document as one readable page. It is self-contained: no script, no request to any
 * host, and a content security policy whose only exception is the hash of its style.
 */
import * as Effect from "effect/Effect";
import { HttpRouter, type HttpServerResponse } from "effect/http";
import { type HttpApi, type HttpApiGroup, OpenApi } from "effect/http-api";
import { pagesWith } from "./look.ts";
import { escapeHtml } from "../../ground/html.ts";

type Node = Readonly<Record<string, unknown>>;

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
}

interface Body {
  readonly description?: string;
  readonly content?: Readonly<Record<string, { readonly schema?: unknown; readonly example?: unknown }>>;
}

interface Operation {
  readonly operationId: string;
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body>>;
  readonly "x-codeSamples"?: readonly { readonly source: string }[];
}

interface ApiDocument {
  readonly info: { readonly title: string; readonly description?: string };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

const page = pagesWith();

/** Text of the document: what stands in backquotes is code. */
const prose = (text: string): string => escapeHtml(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>");
const block = (value: unknown): string =>
  `<pre><code>${escapeHtml(typeof value === "string" ? value : JSON.stringify(value, null, 2))}</code></pre>`;

const cells = (tag: string, row: readonly string[]): string =>
  `<tr>${row.map((cell) => `<${tag}>${cell}</${tag}>`).join("")}</tr>`;

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  `<table>${cells("th", head)}${rows.map((row) => cells("td", row)).join("")}</table>`;

const bodyHtml = ({ content = {} }: Body): string =>
  Object.entries(content)
    .map(([type, { schema, example }]) => {
      const exampleHtml =
        example === undefined ? "" : `<p>Example, <code>${escapeHtml(type)}</code>:</p>${block(example)}`;
      const details = `<details><summary>Schema of <code>${escapeHtml(type)}</code></summary>${block(schema)}</details>`;
      return exampleHtml + details;
    })
    .join("");

const operationHtml = (path: string, method: string, operation: Operation): string => {
  const { operationId, summary = "", parameters = [], requestBody, responses } = operation;
  const verb = method.startsWith("x-") ? "ANY METHOD" : method.toUpperCase();
  const success = Object.entries(responses).filter(([status]) => status.startsWith("2"));
  return [
    `<section id="${escapeHtml(operationId)}"><h3><code>${verb} ${escapeHtml(path)}</code></h3>`,
    `<p>${prose(summary)}</p>`,
    ...(operation["x-codeSamples"] ?? []).map(({ source }) => block(source)),
    parameters.length === 0
      ? ""
      : table(
          ["Parameter", "In", ""],
          parameters.map(({ name, in: place, required = false, description = "" }) => [
            `<code>${escapeHtml(name)}</code>`,
            escapeHtml(place),
            `${required ? "Required. " : ""}${prose(description)}`,
          ]),
        ),
    requestBody === undefined ? "" : `<h4>Request</h4>${bodyHtml(requestBody)}`,
    "<h4>Answers</h4>",
    table(
      ["Status", ""],
      Object.entries(responses).map(([status, { description = "" }]) => [
        escapeHtml(status),
        prose(description),
      ]),
    ),
    ...success.map(([, answer]) => bodyHtml(answer)),
    "</section>",
  ].join("\n");
};

/** @returns the page of a document. */
const docsPage = ({ info, tags, paths, components }: ApiDocument): HttpServerResponse.HttpServerResponse => {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const groups = tags.map(({ name }) => ({
    name,
    members: operations.filter(({ operation }) => operation.tags?.includes(name) === true),
  }));
  const contents = operations.map(
    ({ operation: { operationId, summary = "" } }) =>
      `<li><a href="#${escapeHtml(operationId)}"><code>${escapeHtml(operationId)}</code></a> ${prose(summary)}</li>`,
  );
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]: readonly [string, unknown]) =>
      `<section id="schema-${escapeHtml(name)}"><h3>${escapeHtml(name)}</h3>${block(schema as Node)}</section>`,
  );
  const body = [
    `<h1>${escapeHtml(info.title)}</h1>\n<p>${prose(info.description ?? "")}</p>`,
    '<p>How to use and operate the service: <a href="/docs/guide">the guide</a>.</p>',
    '<p>The same as an OpenAPI document: <a href="/openapi.json">/openapi.json</a>.</p>',
    `<nav><ul>\n${contents.join("\n")}\n</ul></nav>`,
    ...groups.map(
      ({ name, members }) =>
        `<h2>${escapeHtml(name)}</h2>\n${members
          .map(({ path, method, operation }) => operationHtml(path, method, operation))
          .join("\n")}`,
    ),
    `<h2>Schemas</h2>\n${schemas.join("\n")}`,
  ].join("\n");
  return page({ title: info.title, body });
};

/** The page of an API's OpenAPI document. Built once: it does not change while the service runs. */
export const docsRoute = <Groups extends HttpApiGroup.Constraint>(api: HttpApi.HttpApi<string, Groups>) =>
  HttpRouter.addAll([
    HttpRouter.route(
      "GET",
      "/docs",
      Effect.succeed(docsPage(OpenApi.fromApi(api) as unknown as ApiDocument)),
    ),
  ]);
