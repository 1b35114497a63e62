/** Signing in to the page, its cookie and what it may do (api.md 3 "preview", 9; threats.md T08). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ownPage, PAGE_DIRECTORY, PAGE_NAME, readPage } from "../../../src/http/pages/page-files.ts";
import { cookieIn } from "../../../src/http/pages/dashboard-sessions.ts";
import { startTestService, type Answer, type TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  expectStatus,
  fields,
  makeProject,
  makeUserToken,
  runSession,
  sandboxEnvironment,
} from "../../support/service/requests.ts";

let service: TestService;
beforeAll(async () => {
  service = await shareService();
});
afterAll(() => service.close());

const seen = (answer: Answer): readonly [number, unknown] => [answer.status, fields(answer)["code"]];
const cookieLine = (answer: Answer): string => String(answer.headers["set-cookie"] ?? "");
const cookieOf = (answer: Answer): string => cookieLine(answer).split(";")[0] ?? "";

const signIn = (token: string): Promise<Answer> =>
  service.request("POST", "/dashboard/session", { token: null, body: { token } });

/** A signed-in browser. */
const browser = async (token = service.token) => {
  const answer = expectStatus(await signIn(token), 200);
  const [cookie, csrf] = [cookieOf(answer), String(fields(answer)["csrf"])];
  const ask = (
    method: string,
    target: string,
    headers: Readonly<Record<string, string>> = {},
    body?: unknown,
  ) =>
    service.request(method, target, {
      token: null,
      headers: { cookie, ...headers },
      ...(body === undefined ? {} : { body }),
    });
  return { cookie, csrf, ask };
};

/** Presses the button of a one-time link's page. */
const press = (code: string, headers: Readonly<Record<string, string>> = {}) =>
  service.request("POST", "/dashboard/open", { token: null, headers, stream: `code=${code}` });

/** The names of the page's main script and of its styles. */
const named = async () => {
  const { text } = await service.request("GET", "/", { token: null });
  const [, app = "", page = ""] = /(?=[^]*"(main-[\w-]+\.js)")[^]*"(page-[\w-]+\.css)"/.exec(text) ?? [];
  return { app, page };
};

/** The main script, as a browser gets it that sends these headers. */
const script = async (headers: Readonly<Record<string, string>>) => {
  const { app } = await named();
  const answer = await fetch(`${service.url}/${app}`, { headers });
  return { answer, text: await answer.text() };
};

describe("the page", () => {
  it("may run its own files alone, and cannot be framed [T08]", async () => {
    const { app, page } = await named();
    for (const target of ["/", `/${app}`, `/${page}`, "/icon.svg"]) {
      const answer = expectStatus(await service.request("GET", target, { token: null }), 200);
      const policy = answer.headers["content-security-policy"] ?? "";
      for (const rule of [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ]) {
        expect(policy).toContain(rule);
      }
      expect(policy).not.toContain("unsafe");
      expect(answer.headers["x-content-type-options"]).toBe("nosniff");
      expect(answer.headers["referrer-policy"]).toBe("no-referrer");
    }
  });

  it("is compressed for browsers, whole for others, and empty for one that has it", async () => {
    const plain = await script({ "accept-encoding": "identity" });
    expect(plain.answer.headers.get("content-encoding")).toBeNull();
    expect(plain.text.includes("/** @param")).toBe(false);
    const gzipped = await script({ "accept-encoding": "br, gzip" });
    expect(gzipped.answer.headers.get("content-encoding")).toBe("gzip");
    expect(gzipped.answer.headers.get("vary")).toBe("accept-encoding");
    expect(gzipped.text === plain.text).toBe(true);
    const tag = plain.answer.headers.get("etag") ?? "";
    expect(tag).toMatch(/^"[\w-]{22}"$/);
    const again = await script({ "if-none-match": tag });
    expect([again.answer.status, again.text]).toEqual([304, ""]);
    expect(again.answer.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect((await script({ "if-none-match": '"another"' })).answer.status).toBe(200);
  });

  it("is kept by browsers where a name says the content, and asked for where it does not", async () => {
    const { app, page } = await named();
    for (const name of [app, page]) {
      const answer = await service.request("GET", `/${name}`, { token: null });
      expect(answer.headers["cache-control"], name).toBe("public, max-age=31536000, immutable");
    }
    for (const name of ["", "icon.svg"]) {
      const answer = await service.request("GET", `/${name}`, { token: null });
      expect(answer.headers["cache-control"], name).toBe("no-cache");
    }
  });

  it("names all parts that its script loads at once, and serves them", async () => {
    const { text } = await service.request("GET", "/", { token: null });
    const linked = [...text.matchAll(/rel="modulepreload" href="([\w-]+\.js)"/g)].map(
      ([, name]) => name ?? "",
    );
    const { text: code } = await script({});
    const imported = [...code.matchAll(/(?:from|import)"\.\/([\w-]+\.js)"/g)].map(([, name]) => name ?? "");
    expect(imported.length).toBeGreaterThan(0);
    expect(linked.toSorted()).toEqual([...new Set(imported)].toSorted());
    for (const name of linked) {
      const answer = await service.request("GET", `/${name}`, { token: null });
      expect([answer.status, answer.headers["content-type"]]).toEqual([
        200,
        "text/javascript; charset=utf-8",
      ]);
    }
  });

  it("has the installation's own name in its title and at its top, as text, after its logo", async () => {
    const files = await readPage(PAGE_DIRECTORY);
    const logo = { name: "logo.svg", plain: Buffer.from("<svg/>") };
    const ofAda = await ownPage(files, { name: "Ada & Co", logo });
    const [before, after] = [files, ofAda].map((all) => {
      const page = all.find(({ name }) => name === "index.html");
      return { tag: page?.tag, html: Buffer.from(page?.plain ?? []).toString() };
    });
    expect(after?.html).toContain("<title>Ada &amp; Co</title>");
    expect(after?.html).toMatch(
      /class="brand"[^>]*><img class="logo" src="logo.svg" alt="" \/>Ada &amp; Co<\/a>/,
    );
    expect(after?.tag).not.toBe(before?.tag);
    expect(ofAda.find(({ name }) => name === "logo.svg")).toMatchObject({ type: "image/svg+xml" });
    expect(await ownPage(files, { name: PAGE_NAME, logo: null })).toEqual(files);
  });

  it.each([
    ["the Markdown library's", /! markdown-it \S+ .*@license MIT/],
    ["the icons'", /! @license Lucide - ISC License, Copyright .* Feather - MIT License, Copyright/],
  ])("keeps the notice of %s license", async (_, notice) => {
    const files = await readPage(PAGE_DIRECTORY);
    const notices = files.filter(({ plain }) => notice.test(Buffer.from(plain).toString("utf8")));
    expect(notices.length).toBe(1);
  });

  it("serves only the page's own files", async () => {
    for (const target of [
      "/package.json",
      "/..%2fpackage.json",
      "/%2e%2e/package.json",
      "/.git/config",
      "/app.js",
      "/app.ts",
      "/wire.d.ts",
      "/markdown-it.esm.min.mjs",
    ]) {
      expect((await service.request("GET", target, { token: null })).status).toBe(404);
    }
  });
});

describe("signing in", () => {
  it("accepts a user's token, and leaves a cookie that scripts and other sites cannot use", async () => {
    const answer = expectStatus(await signIn(service.token), 200);
    const line = cookieLine(answer);
    for (const rule of ["HttpOnly", "SameSite=Strict", "Path=/"]) expect(line).toContain(rule);
    expect(line).not.toMatch(/Domain=/i);
    expect(line).not.toContain(service.token);
    expect(answer.text).not.toContain(service.token);
  });

  it("accepts no token of a sandbox, and no unknown one", async () => {
    const pid = await makeProject(service);
    const sid = await runSession(service, pid);
    const environment = await sandboxEnvironment(service, sid);
    const tokens = [
      environment["PLATFORM_TOKEN"],
      environment["PLATFORM_CLI_TOKEN"],
      "x",
      "",
      `platform_pat_${"a".repeat(43)}`,
    ];
    for (const token of tokens) {
      const answer = await signIn(token ?? "");
      expect([...seen(answer), cookieLine(answer)]).toEqual([401, "unauthorized", ""]);
    }
    const malformed = await service.request("POST", "/dashboard/session", {
      token: null,
      headers: { "content-type": "application/json" },
      body: "{",
    });
    expect(malformed.status).toBe(400);
  });

  it("by a link works once, and leads to the page alone", async () => {
    const made = fields(expectStatus(await service.request("POST", "/dashboard/links"), 201));
    const target = String(made["url"]).replace(service.url, "");
    const code = target.split("=")[1] ?? "";
    // A program that only looks at the link does not use it up.
    for (const _ of [1, 2]) {
      const shown = expectStatus(await service.request("GET", target, { token: null }), 200);
      expect([cookieLine(shown), shown.headers["cache-control"]]).toEqual(["", "no-store"]);
      expect(shown.text).toContain("Sign in as admin?");
      expect(shown.text).toContain("<header>Platform</header>");
      expect(shown.headers["content-security-policy"]).toContain("form-action 'self'");
      // Without a referrer, the form would name no origin, and be refused.
      expect(shown.headers["referrer-policy"]).toBe("same-origin");
    }
    const first = await press(code);
    expect([first.status, first.headers["location"]]).toEqual([303, "/"]);
    const second = await press(code);
    expect([second.headers["location"], cookieLine(second)]).toEqual(["/?link=refused", ""]);
    const me = await service.request("GET", "/v1/me", { token: null, headers: { cookie: cookieOf(first) } });
    expect(me.status).toBe(200);
    for (const spent of [
      target,
      "/dashboard/open?code=nope",
      "/dashboard/open",
      `${target}&next=https://evil.example`,
    ]) {
      const answer = await service.request("GET", spent, { token: null });
      expect([answer.status, answer.headers["location"], cookieLine(answer)]).toEqual([
        303,
        "/?link=refused",
        "",
      ]);
    }
  });

  it.each([
    { origin: "https://evil.example" },
    { origin: "null" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "same-site", origin: "http://p1.localhost" },
  ])("is begun by no other site's page: %o [T08]", async (headers) => {
    const made = fields(expectStatus(await service.request("POST", "/dashboard/links"), 201));
    const code = String(made["url"]).split("=")[1] ?? "";
    const token = null;
    const answers = [
      await service.request("POST", "/dashboard/session", { token, headers, body: { token: service.token } }),
      await service.request("POST", "/dashboard/invitations/accept", {
        token,
        headers,
        body: { code: "x", name: "x" },
      }),
      await press(code, headers),
    ];
    for (const answer of answers)
      expect([...seen(answer), cookieLine(answer)]).toEqual([403, "forbidden", ""]);
    const { host } = new URL(service.url);
    const own = { origin: `http://${host}`, "sec-fetch-site": "same-origin" };
    expect(cookieLine(await press(code, own))).toContain("platform_dashboard=");
  });

  it("is begun by JSON alone, which no form can send [T08]", async () => {
    for (const target of ["/dashboard/session", "/dashboard/invitations/accept"]) {
      const headers = { "content-type": "text/plain" };
      const stream = JSON.stringify({ token: service.token, code: "x", name: "x" });
      const answer = await service.request("POST", target, { token: null, headers, stream });
      expect([answer.status, cookieLine(answer)]).toEqual([415, ""]);
    }
  });

  it("a link is created with a user's token, not with the cookie [T08]", async () => {
    const { ask, csrf } = await browser();
    expect(seen(await ask("POST", "/dashboard/links", { "x-csrf-token": csrf }))).toEqual([403, "forbidden"]);
  });

  it("ends at sign-out", async () => {
    const { ask, csrf } = await browser();
    expect(seen(await ask("DELETE", "/dashboard/session"))).toEqual([403, "csrf_token_missing"]);
    const answer = await ask("DELETE", "/dashboard/session", { "x-csrf-token": csrf });
    expect(cookieLine(answer)).toMatch(/^platform_dashboard=;.*Max-Age=0/);
    // The cookie that the browser was given before is worth nothing.
    expect((await ask("GET", "/v1/me")).status).toBe(401);
    expect((await service.request("DELETE", "/dashboard/session", { token: null })).status).toBe(204);
  });
});

describe("the cookie", () => {
  it("reads without a header, and changes nothing without the page's own header [T08]", async () => {
    const { ask, csrf } = await browser();
    expect((await ask("GET", "/v1/me")).status).toBe(200);
    const body = { name: "made by the page", repository: { kind: "hosted" } };
    for (const header of [
      {},
      { "x-csrf-token": "" },
      { "x-csrf-token": "x".repeat(43) },
      { "x-csrf-token": `${csrf}x` },
    ]) {
      expect(seen(await ask("POST", "/v1/projects", header, body))).toEqual([403, "csrf_token_missing"]);
    }
    expect((await ask("POST", "/v1/projects", { "x-csrf-token": csrf }, body)).status).toBe(201);
  });

  it("is valid with its own header alone, not with another browser's [T08]", async () => {
    const [mine, theirs] = [await browser(), await browser((await makeUserToken(service)).token)];
    const answer = await mine.ask("POST", "/v1/tokens", { "x-csrf-token": theirs.csrf }, { name: "t" });
    expect(seen(answer)).toEqual([403, "csrf_token_missing"]);
  });

  it("is invalid once its token is deleted", async () => {
    const { id, token } = await makeUserToken(service);
    const { ask } = await browser(token);
    expect((await ask("GET", "/v1/me")).status).toBe(200);
    expect((await ask("GET", "/dashboard/session")).status).toBe(200);
    await service.request("DELETE", `/v1/tokens/${id}`);
    expect(seen(await ask("GET", "/v1/me"))).toEqual([401, "unauthorized"]);
    expect(seen(await ask("GET", "/dashboard/session"))).toEqual([401, "unauthorized"]);
  });

  it("cannot be forged: every changed or cut one is refused", async () => {
    const { cookie } = await browser();
    const value = cookie.slice("platform_dashboard=".length);
    const forged = ["", "x", "x".repeat(43), `${value}x`, value.slice(0, -1), `${value}.x`];
    for (const made of forged) {
      const headers = { cookie: `platform_dashboard=${made}` };
      expect([made, (await service.request("GET", "/v1/me", { token: null, headers })).status]).toEqual([
        made,
        401,
      ]);
    }
  });

  it("cannot be planted by another host: over https its name says so, and of two none counts [T08]", async () => {
    const { cookie, ask } = await browser();
    const value = cookie.slice("platform_dashboard=".length);
    const planted = `platform_dashboard=${"x".repeat(43)}`;
    for (const both of [`${planted}; ${cookie}`, `${cookie}; ${planted}`])
      expect((await ask("GET", "/v1/me", { cookie: both })).status).toBe(401);
    const https = "https://platform.example.test";
    expect(cookieIn(`${planted}; __Host-${cookie}`, https)).toBe(value);
    expect([cookieIn(cookie, https), cookieIn(cookie, "http://127.0.0.1:8080")]).toEqual([null, value]);
  });

  it("does not help a wrong bearer token", async () => {
    const { ask } = await browser();
    expect((await ask("GET", "/v1/me", { authorization: "Bearer nope" })).status).toBe(401);
  });

  it("opens neither git nor the relay, which are for programs", async () => {
    const { ask, csrf } = await browser();
    const pid = await makeProject(service);
    const headers = { "x-csrf-token": csrf };
    expect((await ask("GET", `/v1/git/${pid}.git/info/refs?service=git-upload-pack`, headers)).status).toBe(
      401,
    );
    const sid = await runSession(service, pid);
    expect((await ask("GET", `/v1/projects/${pid}/sessions/${sid}/runtime/session`, headers)).status).toBe(
      401,
    );
  });
});

it("is sent over https alone if the service is behind https, and names the installation where a person signs in", async () => {
  const PLATFORM_PUBLIC_URL = "https://platform.example";
  const secure = await startTestService({ PLATFORM_PUBLIC_URL, PLATFORM_NAME: "Ada & Co" });
  const body = { token: secure.token };
  const answer = await secure.request("POST", "/dashboard/session", { token: null, body });
  expect(cookieLine(answer)).toContain("Secure");
  const { url } = fields(expectStatus(await secure.request("POST", "/dashboard/links"), 201));
  const target = String(url).replace(PLATFORM_PUBLIC_URL, "");
  const { text } = expectStatus(await secure.request("GET", target, { token: null }), 200);
  expect(text).toContain("<title>Sign in as admin · Ada &amp; Co</title>");
  await secure.close();
});
