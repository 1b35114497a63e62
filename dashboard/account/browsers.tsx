/** Where the reader is signed in, and the providers that she can add to herself. */
import { queryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { getJson } from "../api/api.ts";
import { request } from "../api/client.ts";
import { pagedQuery } from "../api/lists.ts";
import { queries } from "../api/queries.ts";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { providerName } from "../frame/sign-in.ts";
import { Act, FrameAct } from "../ui/act.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Detail, More, Row, Tag, Time } from "../ui/parts.tsx";
import type { Provider } from "../wire.d.ts";
import { browserName } from "./browser-name.ts";

type Browser = Answer<"GET /v1/me/browsers">["browsers"][number];
type Identity = Answer<"GET /v1/me/identities">["identities"][number];

const browsersQuery = pagedQuery(["browsers"], (query) =>
  request("GET /v1/me/browsers", {
    query,
  }),
);

const identitiesQuery = queryOptions({
  queryKey: ["identities"],
  queryFn: async () => (await request("GET /v1/me/identities", {})).identities,
});

/** Its address is the page's own, and not of the API. */
const providersQuery = queryOptions({
  queryKey: ["sign-in-providers"],
  queryFn: async (): Promise<Provider[]> => (await getJson("/dashboard/providers")).providers,
});

const end = async ({ id }: Browser): Promise<void> => {
  await request("DELETE /v1/me/browsers/:id", { params: { id } });
  notice("The browser is signed out.");
};

/** The frame shows the sign-in, because the next request is refused. */
const endAll = async (): Promise<void> => {
  const sure = await ask({
    title: "Sign out everywhere?",
    text: "All your browsers are signed out, also this one. Access tokens stay valid.",
    confirm: "Sign out",
  });
  if (sure !== null) await request("DELETE /v1/me/browsers", {});
};

const remove = async (id: string, title: string): Promise<void> => {
  const sure = await ask({
    title: `Remove ${title}?`,
    text: "It signs you in no more, and browsers that it signed in are signed out. You can add it again.",
    confirm: "Remove",
    danger: true,
  });
  if (sure === null) return;
  await request("DELETE /v1/me/identities/:id", { params: { id } });
  notice("The sign-in is removed.");
};

interface Known {
  readonly providers: readonly Provider[];
}

const BrowserRow = ({ browser, providers }: Known & { readonly browser: Browser }) => {
  const { user_agent: agent, address, signed_in_by: by, last_used_at: used, current } = browser;
  const name = browserName(agent);
  return (
    <Row
      states={current && <Tag>this browser</Tag>}
      actions={
        !current && (
          <Act
            label="Sign out"
            about={`${name} at ${address ?? "an unknown address"}`}
            does={() => end(browser)}
          />
        )
      }
    >
      <strong>{name}</strong>
      <Detail>
        {address !== null && `${address} · `}
        {by === "token" ? "with an access token" : `with ${providerName(by, providers)}`}
        {" · last used "}
        <Time at={used} />
      </Detail>
    </Row>
  );
};

const IdentityRow = ({ identity, providers }: Known & { readonly identity: Identity }) => {
  const { id, provider, issuer, subject, name, created_at: added, last_sign_in_at: last } = identity;
  const title = `${name} at ${provider === null ? issuer : providerName(provider, providers)}`;
  return (
    <Row
      states={provider === null && <Tag>not set up any more</Tag>}
      actions={<Act label="Remove" about={title} does={() => remove(id, title)} />}
    >
      <strong>{title}</strong>
      <Detail>
        {`${subject} · ${last === null ? "added" : "last sign-in"} `}
        <Time at={last ?? added} />
      </Detail>
    </Row>
  );
};

const Identities = ({ providers }: Known) => {
  const { data: identities = [] } = useQuery(identitiesQuery);
  if (providers.length === 0 && identities.length === 0) return null;
  return (
    <section>
      <h2>How you sign in</h2>
      <p className="quiet">Add a provider to sign in with it as yourself, without a token.</p>
      {identities.length > 0 && (
        <ul className="rows">
          {identities.map((identity) => (
            <IdentityRow key={identity.id} identity={identity} providers={providers} />
          ))}
        </ul>
      )}
      <p className="actions">
        {providers.map(({ id, label }) => (
          <FrameAct key={id} name="go-to-provider" input={{ provider: id, link: "yes" }}>
            {`Add ${label}`}
          </FrameAct>
        ))}
      </p>
    </section>
  );
};

const Browsers = () => {
  const list = useInfiniteQuery(browsersQuery);
  const { data: providers = [] } = useQuery(providersQuery);
  const all = list.data?.pages.flatMap((page) => page.browsers) ?? [];
  return (
    <>
      <h1>Browsers</h1>
      <p className="quiet">
        These browsers are signed in as you. A browser is signed out after 8 hours without use, and after 7
        days.
      </p>
      <ul className="rows" aria-label="Browsers">
        {all.map((browser) => (
          <BrowserRow key={browser.id} browser={browser} providers={providers} />
        ))}
      </ul>
      <More list={list}>Show older browsers</More>
      <p className="actions">
        <Act label="Sign out everywhere" className="danger" does={endAll} />
      </p>
      <Identities providers={providers} />
    </>
  );
};

export const browsers = framedPage<void>({
  load: async () => {
    await Promise.all([
      queries.infiniteQuery(browsersQuery),
      queries.query(identitiesQuery),
      queries.query(providersQuery),
    ]);
  },
  title: () => "Browsers",
  Body: Browsers,
});
