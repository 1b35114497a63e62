/**
 * The documents below `docs/`, as pages at `/docs/guide`. The index is `docs/README.md`; `docs/use/sessions.md` is at
 * `/docs/guide/use/sessions`. They need no token and no network, as the page at `/docs`.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import * as Effect from "effect/Effect";
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http";
import { pagesWith } from "./look.ts";
import { renderMarkdown, type Heading } from "./markdown.ts";
import { escapeHtml } from "../../ground/html.ts";

const ROOT = "/docs/guide";
/** From how many sections on a page has a table of contents. */
const CONTENTS_FROM = 4;

const page = pagesWith(`
body { max-width: 48rem; overflow-wrap: break-word; }
h1, h2, h3 { line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin-top: 2.25rem; }
h3 { margin-top: 1.75rem; }
.top { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; padding-bottom: 0.75rem; border-bottom: 1px solid #8886; }
.anchor { color: inherit; opacity: 0.45; text-decoration: none; }
.anchor:hover, .anchor:focus-visible { opacity: 1; }
.wide { overflow-x: auto; overflow-wrap: normal; }
.wide th, .wide td { border-bottom: 1px solid #8883; min-width: 5rem; }
.wide code { overflow-wrap: normal; }
pre code { overflow-wrap: normal; }
.caption { margin: 1rem 0 -0.75rem; font-size: 0.85em; opacity: 0.75; }
.more { border-top: 1px solid #8886; margin-top: 3rem; }
`);

interface Document {
  readonly source: string;
  /** Its address on the service. */
  readonly address: string;
}

/** By their paths below the directory, such as `use/sessions.md`. */
type Documents = ReadonlyMap<string, Document>;

/** `README.md` is its directory's index. */
const pageAddress = (file: string): string =>
  `${ROOT}/${file.replace(/\.md$/, "").replace(/(?:^|\/)README$/, "")}`.replace(/\/$/, "");

const readDocuments = (directory: string): Documents =>
  new Map(
    readdirSync(directory, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".md"))
      .toSorted()
      .map((file) => {
        const source = readFileSync(path.join(directory, file), "utf8");
        return [file, { source, address: pageAddress(file) }] as const;
      }),
  );

const SCHEME = /^[a-z][a-z0-9+.-]*:/i;

/** Where a document's link leads: to another document's page, or elsewhere. A file outside the guide is shown without a link. */
const resolver = (documents: Documents, file: string) => (href: string) => {
  if (SCHEME.test(href)) return /^https?:/i.test(href) ? href : null;
  const [target = "", anchor] = href.split("#");
  const hash = anchor === undefined ? "" : `#${anchor}`;
  if (target === "") return hash;
  const linkedFile = path.posix.join(path.posix.dirname(file), target).replace(/\/$/, "");
  const { address } =
    documents.get(linkedFile) ?? documents.get(path.posix.join(linkedFile, "README.md")) ?? {};
  return address === undefined ? null : address + hash;
};

const documentTitle = ({ source }: Document): string => /^# (.+)$/m.exec(source)?.[1] ?? "Guide";

const link = (address: string, text: string): string =>
  `<a href="${escapeHtml(address)}">${escapeHtml(text)}</a>`;

const listHtml = (items: readonly string[]): string =>
  `<ul>\n${items.map((item) => `<li>${item}</li>`).join("\n")}\n</ul>`;

const contentsHtml = (headings: readonly Heading[]): string => {
  const sections = headings.filter(({ depth }) => depth === 2);
  return sections.length < CONTENTS_FROM
    ? ""
    : `<nav aria-label="On this page">${listHtml(sections.map(({ id, text }) => link(`#${id}`, text)))}</nav>`;
};

/** The other documents of the same kind. */
const siblingsHtml = (documents: Documents, file: string): string => {
  const folder = path.posix.dirname(file);
  const others = [...documents].filter(([other]) => other !== file && path.posix.dirname(other) === folder);
  return folder === "." || others.length === 0
    ? ""
    : `<nav class="more" aria-label="More documents">${listHtml(
        others.map(([, other]) => link(other.address, documentTitle(other))),
      )}</nav>`;
};

const TOP = `<nav class="top" aria-label="Site">${[
  link(ROOT, "Guide"),
  link("/docs", "API"),
  link("/", "Dashboard"),
].join("\n")}</nav>`;

const render = (documents: Documents, file: string, document: Document) => {
  const { html, headings } = renderMarkdown(document.source, resolver(documents, file));
  // The contents stand below the title.
  const end = html.indexOf("</h1>") + "</h1>".length;
  const main = [html.slice(0, end), contentsHtml(headings), html.slice(end)].join("\n");
  return page({
    title: `${documentTitle(document)} · Guide`,
    body: `${TOP}\n<main>\n${main}\n</main>\n${siblingsHtml(documents, file)}`,
  });
};

const notFound = page({
  title: "Page not found · Guide",
  body: `${TOP}\n<main>\n<h1>Page not found</h1>\n<p>The guide has no page at this address. ${link(
    ROOT,
    "See the list of all documents.",
  )}</p>\n</main>`,
  status: 404,
});

/** @param directory where the documents are. They are read once; each page is made at its first request. */
export const guideRoutes = (directory: string) => {
  const documents = readDocuments(directory);
  const files = new Map([...documents].map(([file, { address }]) => [address, file]));
  const responses = new Map<string, HttpServerResponse.HttpServerResponse>();
  const answer = Effect.gen(function* () {
    const { url } = yield* HttpServerRequest.HttpServerRequest;
    const [address = ""] = url.split("?");
    const file = files.get(address);
    const document = file === undefined ? undefined : documents.get(file);
    if (file === undefined || document === undefined) return notFound;
    const response = responses.get(file) ?? render(documents, file, document);
    responses.set(file, response);
    return response;
  });
  return HttpRouter.addAll([
    HttpRouter.route("GET", ROOT, answer),
    HttpRouter.route("GET", `${ROOT}/:page`, answer),
    HttpRouter.route("GET", `${ROOT}/:kind/:page`, answer),
    HttpRouter.route("GET", `${ROOT}/:kind/:group/:page`, answer),
  ]);
};
