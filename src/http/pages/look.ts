/** What the pages of text share: one look, and headers that let them load nothing and run nothing. */
import { createHash } from "node:crypto";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import { HttpServerResponse } from "effect/http";
import { escapeHtml } from "../../ground/html.ts";
import { type OwnLook, PAGE_NAME } from "./page-files.ts";

const BASE = `
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
nav ul { columns: 16rem; padding-left: 1.2rem; }
section { border-top: 1px solid #8886; margin-top: 2rem; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid #8886; border-radius: 6px; }
button { font: inherit; padding: 0.4rem 1rem; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: 0.2rem 1rem 0.2rem 0; }
`;

/** How the page names and shows the installation. */
export const InstallationLook = Context.Reference<OwnLook>("platform/http/InstallationLook", {
  defaultValue: () => ({ name: PAGE_NAME, logo: null }),
});

/** The product's look (dashboard/style.css), for the pages on which a person signs in. */
const DOOR_STYLE = `
body { max-width: none; padding: 0; font-size: 15px; background: light-dark(#fbfaf8, #151617); color: light-dark(#1d2021, #e7e5e0); }
header { padding: 0.6rem 1.25rem; font-weight: 600; background: light-dark(#ffffff, #1d1f20); border-bottom: 1px solid light-dark(#e3e0da, #303335); }
main { max-width: 24rem; margin: 12vh auto 0; padding: 0 1.25rem; overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 1.5rem; line-height: 1.25; font-weight: 600; letter-spacing: -0.01em; }
p { margin: 0.6rem 0; }
a { color: light-dark(#1f5f5b, #7cc4bd); text-underline-offset: 0.2em; }
button { width: 100%; margin: 0.4rem 0; padding: 0.5rem; border: 1px solid transparent; border-radius: 8px; cursor: pointer; background: light-dark(#1f5f5b, #7cc4bd); color: light-dark(#ffffff, #0f1716); }
:focus-visible { outline: 2px solid light-dark(#1f5f5b, #7cc4bd); outline-offset: 2px; }
.logo { height: 1.5em; margin-right: 0.4em; vertical-align: -0.4em; }
.quiet { color: light-dark(#62676a, #9ca1a3); }
`;

interface TextPage {
  readonly title: string;
  readonly body: string;
  readonly status?: number;
  /** Whether it has a form, which may be sent to this service. */
  readonly hasForm?: boolean;
}

/**
 * Makes pages whose only style is the shared one and `ownStyle`. The content security policy names that style by its hash.
 *
 * @returns builds a page from its title and the HTML of its body
 */
export const pagesWith = (ownStyle = "") => {
  const style = BASE + ownStyle;
  const policy = (hasForm: boolean): string =>
    [
      "default-src 'none'",
      `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
      "img-src 'self'",
      "base-uri 'none'",
      `form-action ${hasForm ? "'self'" : "'none'"}`,
      "frame-ancestors 'none'",
    ].join("; ");
  return ({ title, body, status = 200, hasForm = false }: TextPage) =>
    HttpServerResponse.text(
      [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        `<title>${escapeHtml(title)}</title>\n<style>${style}</style>\n</head>\n<body>`,
        body,
        "</body>\n</html>\n",
      ].join("\n"),
      {
        status,
        contentType: "text/html; charset=utf-8",
        headers: {
          "content-security-policy": policy(hasForm),
          "x-content-type-options": "nosniff",
          // Without a referrer, a form does not say either which page it is on (own-page.ts).
          "referrer-policy": hasForm ? "same-origin" : "no-referrer",
          "cache-control": hasForm ? "no-store" : "no-cache",
        },
      },
    );
};

const door = pagesWith(DOOR_STYLE);

/** A page on which a person signs in, or reads why that does not go on: the installation's logo and name, and what the page says. */
export const doorPage = ({ title, body, ...page }: TextPage) =>
  Effect.map(InstallationLook, ({ name, logo }) => {
    const picture = logo === null ? "" : `<img class="logo" src="/${logo.name}" alt="">`;
    return door({
      ...page,
      title: `${title} · ${name}`,
      body: `<header>${picture}${escapeHtml(name)}</header>\n<main>${body}</main>`,
    });
  });
