import { expect, test } from "vitest";
import {
  CONNECTOR_LIMIT,
  matchesTool,
  readConnectorEntry,
  ruleFor,
  type Connector,
} from "../../../src/domain/connector/connector.ts";
import { shownName } from "../../../src/domain/connector/tool-name.ts";
import { readExecutor } from "../../../src/domain/manifest/manifest-connectors.ts";
import { parse } from "../manifest/manifest-text.ts";

const ENTRY = { slug: "linear", kind: "mcp", url: "https://mcp.example.com/mcp" };

const read = (entry: Readonly<Record<string, unknown>>): Connector => {
  const { connector } = readConnectorEntry({ ...ENTRY, ...entry });
  if (connector === null) throw new Error("the entry is refused");
  return connector;
};

const faults = (entry: Readonly<Record<string, unknown>>): readonly string[] => {
  const { connector, faults: all } = readConnectorEntry({ ...ENTRY, ...entry });
  return connector === null ? all.map(({ field, message }) => `${field}: ${message}`) : [];
};

test("reads connectors with their rules, in the order of their slugs", () => {
  const manifest = parse(`
[executor]
default = "deny"

[[connectors]]
slug = "search"
kind = "mcp"
url = "https://Search.example.com"
auth = "header"
auth_name = "X-Api-Key"
sessions = ["trigger", "user"]
direct = ["find"]
[[connectors.tools]]
match = "find*"
policy = "allow"
[[connectors.tools]]
match = "*"
policy = "ask"

[[connectors]]
slug = "docs"
kind = "mcp"
url = "https://docs.example.com/mcp"
`);
  expect(manifest.errors).toEqual([]);
  expect(manifest.executor).toEqual({
    defaultPolicy: "deny",
    denied: [],
    connectors: [
      {
        slug: "docs",
        kind: "mcp",
        source: { from: "server" },
        headers: {},
        url: "https://docs.example.com/mcp",
        auth: { kind: "none" },
        credential: "project",
        sessions: ["user"],
        direct: [],
        rules: [],
      },
      {
        slug: "search",
        kind: "mcp",
        source: { from: "server" },
        headers: {},
        url: "https://search.example.com/",
        auth: { kind: "header", name: "X-Api-Key" },
        credential: "project",
        sessions: ["user", "trigger"],
        direct: ["find"],
        rules: [
          { match: "find*", policy: "allow" },
          { match: "*", policy: "ask" },
        ],
      },
    ],
  });
});

test("reports a bad connector with its place beside the good ones", () => {
  const manifest = parse(`
[[connectors]]
slug = "one"
kind = "soap"
url = "https://one.example.com"

[[connectors]]
slug = "two"
kind = "mcp"
url = "https://two.example.com"

[[connectors]]
slug = "two"
kind = "mcp"
url = "https://three.example.com"
`);
  expect(manifest.executor.connectors.map(({ slug, url }) => [slug, url])).toEqual([
    ["two", "https://two.example.com/"],
  ]);
  expect(manifest.fatal).toBe(false);
  expect(manifest.errors).toEqual([
    {
      slug: null,
      index: 0,
      path: "connectors[0].kind",
      message: 'kind is required and must be "mcp", "openapi" or "http".',
      line: 2,
    },
    {
      slug: null,
      index: 2,
      path: "connectors[2].slug",
      message: "slug two is already used by another connector. Choose another slug.",
      line: 12,
    },
  ]);
});

test("allows nothing by a default that it cannot read", () => {
  const manifest = parse('[executor]\ndefault = "sometimes"\n');
  expect(manifest.executor.defaultPolicy).toBe("deny");
  expect(manifest.errors.map(({ path, line }) => [path, line])).toEqual([["executor.default", 1]]);
});

test.each([
  ["a connector without double brackets", { executor: undefined, connectors: {} }, "connectors"],
  ["another field of executor", { executor: { defaults: "allow" }, connectors: [] }, "executor.default"],
  ["an executor that is no table", { executor: "allow", connectors: [] }, "executor.default"],
])("reports %s, and allows nothing by it", (_, tables, path) => {
  const { executor, errors } = readExecutor(tables, "");
  expect(errors.map((error) => error.path)).toEqual([path]);
  expect(executor.connectors).toEqual([]);
  expect(executor.defaultPolicy).not.toBe("allow");
});

test("lets each person have a credential of her own, for sessions of people only", () => {
  const entry = {
    slug: "one",
    kind: "mcp",
    url: "https://one.example.com",
    auth: "oauth",
    credential: "user",
  };
  const { credential, sessions } = read(entry);
  expect([credential, sessions]).toEqual(["user", ["user"]]);
});

test("asks for tools that no rule matches, if the manifest does not say otherwise", () => {
  expect(parse("").executor.defaultPolicy).toBe("ask");
});

test("ignores connectors over the limit and says so", () => {
  const entries = Array.from(
    { length: CONNECTOR_LIMIT + 2 },
    (_, index) => `[[connectors]]\nslug = "c-${index}"\nkind = "mcp"\nurl = "https://example.com/${index}"\n`,
  );
  const manifest = parse(entries.join("\n"));
  expect(manifest.executor.connectors).toHaveLength(CONNECTOR_LIMIT);
  expect(manifest.errors.map(({ message }) => message)).toEqual([
    "A manifest can have at most 20 connectors. The last 2 are ignored.",
  ]);
});

test.each([
  [{ auth: "basic", auth_name: "X-Key" }, "only for auth"],
  [{ auth: "bearer", scope: "read" }, "scope is only for"],
  [{ auth: "oauth", scope: "a  b" }, "scope must be words"],
  [{ auth: "oauth", client_id: "" }, "client_id must have"],
  [{ auth: "bearer", issuer: "https://login.example.com" }, "issuer is only for"],
  [{ auth: "bearer", client_auth: "basic_plain" }, "client_auth is only for"],
  [{ auth: "oauth", client_auth: "basic" }, 'client_auth must be "basic_plain"'],
  [{ auth: "oauth", issuer: "login.example.com" }, "issuer must be the https URL"],
  [{ auth: "oauth", issuer: "https://a@login.example.com" }, "issuer must be the https URL"],
  [{ auth: "oauth", issuer: "https://login.example.com/?" }, "issuer must be the https URL"],
  [{ credential: "user" }, "needs an auth that a person has"],
  [{ credential: "user", auth: "client_credentials" }, "needs an auth that a person has"],
  [{ credential: "user", auth: "bearer", sessions: ["user", "trigger"] }, 'sessions must be ["user"]'],
  [{ credential: "me" }, 'must be "project" or "user"'],
  [{ slug: "platform" }, "reserved"],
  [{ slug: "Linear" }, "a-z, 0-9"],
  [{ slug: "a".repeat(21) }, "1 to 20"],
  [{ url: "ftp://example.com" }, "https URL"],
  [{ url: "https://me:word@example.com" }, "user or a password"],
  [{ url: "https://example.com/#part" }, "fragment"],
  [{ auth: "header" }, "auth_name is required"],
  [{ auth: "header", auth_name: "Host" }, "cannot be the header"],
  [{ auth: "header", auth_name: "mcp-session-id" }, "cannot be the header"],
  [{ auth: "header", auth_name: "X-Key\r\nX-Other" }, "cannot be the header"],
  [{ auth: "query", auth_name: "a&b" }, "letters, digits"],
  [{ auth: "bearer", auth_name: "X-Key" }, "only for auth"],
  [{ sessions: [] }, "sessions must be"],
  [{ sessions: ["everyone"] }, "sessions must be"],
  [{ direct: "one" }, "direct must be"],
  [{ tools: [{ match: "a b", policy: "allow" }] }, "match must be"],
  [{ tools: [{ match: "a", policy: "yes" }] }, "policy must be"],
  [{ tools: [{ match: "a", policy: "allow", when: 1 }] }, "fields match and policy"],
  [{ token: "x" }, "Unknown field"],
])("refuses the entry with %o", (entry, message) => {
  expect(faults(entry)).toEqual([expect.stringContaining(message)]);
});

test("leaves out and names a name in direct that no tool can have, and keeps the others", () => {
  const { connector, faults: left } = readConnectorEntry({ ...ENTRY, direct: ["find", "list issues", 7] });
  expect(connector?.direct).toEqual(["find"]);
  expect(left.map(({ field, message }) => `${field}: ${message}`)).toEqual([
    expect.stringContaining('direct[1]: The name "list issues" is left out'),
    expect.stringContaining("direct[2]: This entry is left out"),
  ]);
});

test("lets the first rule that matches decide", () => {
  const connector = read({
    tools: [
      { match: "delete_*", policy: "deny" },
      { match: "*", policy: "allow" },
    ],
  });
  expect(ruleFor({ defaultPolicy: "ask" }, connector, "delete_all")).toEqual({
    policy: "deny",
    rule: "delete_*",
  });
  expect(ruleFor({ defaultPolicy: "ask" }, connector, "list").policy).toBe("allow");
  expect(ruleFor({ defaultPolicy: "ask" }, read({}), "list")).toEqual({ policy: "ask", rule: "default" });
});

test.each([
  ["list", "list", true],
  ["list", "lists", false],
  ["*", "anything", true],
  ["a*b", "ab", true],
  ["a*b", "aab", true],
  ["a*a", "a", false],
  ["*.read", "files.read", true],
  ["a*b*c", "a-b-b-c", true],
  ["a*b*c", "a-c-b", false],
])("matches %s with %s: %s", (pattern, tool, expected) => {
  expect(matchesTool(pattern, tool)).toBe(expected);
});

test("matches a hostile pattern in linear time", () => {
  expect(matchesTool(`${"a*".repeat(60)}b`, "a".repeat(128))).toBe(false);
});

test("shows a tool with its connector's slug in front", () => {
  expect(shownName("linear", "list_issues")).toBe("linear_list_issues");
});

test("shortens a name that is too long or has other characters, and keeps names apart", () => {
  const long = "x".repeat(60);
  const names = [
    shownName("linear", long),
    shownName("linear", `${long}y`),
    shownName("linear", "files.read"),
    shownName("linear", "files/read"),
    shownName("linear", "files_read"),
  ];
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,46}$/);
});

test("never gives a tool the shortened name of another tool", () => {
  const shortened = shownName("linear", "files.read");
  const imitation = shortened.replace("linear_", "");
  expect(shownName("linear", imitation)).not.toBe(shortened);
});
