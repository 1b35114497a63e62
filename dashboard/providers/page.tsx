/** Providers of models: the account's, which owners change, and the reader's own. */
import { useQuery } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { queries } from "../api/queries.ts";
import { projectLink } from "../elements/parts.ts";
import { useAddressQuery } from "../ui/address.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { Empty } from "../ui/parts.tsx";
import { Limits, spendQuery } from "./limits.tsx";
import { AddForm, ProviderRows } from "./list.tsx";
import { ACCOUNT, OWN, providersQuery } from "./place.ts";
import { Prices } from "./prices.tsx";
import { Subscriptions, subscriptionsQuery } from "./subscriptions.tsx";

const Models = ({ me }: { readonly me: Answer<"GET /v1/me"> | null }) => {
  const { data: providers = [] } = useQuery(providersQuery(ACCOUNT));
  const { data: own = [] } = useQuery(providersQuery(OWN));
  const governs = me?.user.role === "owner";
  const query = useAddressQuery();
  const project = query.get("for");
  return (
    <>
      {query.has("change") && (
        // A session whose turn the key has failed, or a project's settings.
        <p className="actions page-actions">
          <button type="button" onClick={() => history.back()}>
            Back to where you were
          </button>
        </p>
      )}
      {project !== null && (
        <p className="actions page-actions">
          <a
            className={providers.length > 0 ? "button primary" : "button"}
            href={projectLink(project, "/setup")}
          >
            {providers.length > 0 ? "Continue with the project" : "Back to the project"}
          </a>
        </p>
      )}
      <h1>Models</h1>
      <p className="quiet">
        All projects of the account can use the models of these providers. Their keys stay in the service: no
        sandbox gets one, and the tokens of each call are counted.
        {!governs && " Only owners of the account change this list."}
      </p>
      {providers.length === 0 ? (
        <Empty title="The account has no provider of models.">
          Until it has one, sessions use the operator&apos;s gateway, or keys that are secrets of projects.
        </Empty>
      ) : (
        <ProviderRows place={ACCOUNT} providers={providers} governs={governs} />
      )}
      {governs && <AddForm place={ACCOUNT} title="Add a provider" isFirst={providers.length === 0} />}
      <section>
        <h2>Your own</h2>
        <p className="quiet">
          Only sessions that you start use these, while you alone steer them. Only you see them. They come
          before a project&apos;s and the account&apos;s. What they cost counts for your limit, and for no
          project or account.
        </p>
        {own.length > 0 && <ProviderRows place={OWN} providers={own} governs />}
        <AddForm place={OWN} title="Add a provider of your own" />
      </section>
      <Subscriptions />
      {governs && <Limits />}
      {governs && <Prices providers={providers} />}
    </>
  );
};

export const pages = {
  providers: framedPage<void>({
    load: async () => {
      // Only owners may read what the account spent.
      await Promise.all([
        queries.query(providersQuery(ACCOUNT)),
        queries.query(providersQuery(OWN)),
        queries.query(subscriptionsQuery),
        queries.query(spendQuery).catch(() => undefined),
      ]);
    },
    title: () => "Models",
    Body: Models,
  }),
};
