/** Where people find the page, for sentences that an agent reads to its person. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";

/** The service's address for people, without a final slash. Null if the process serves no page, as in a simulation. */
export const PageAddress = Context.Reference<string | null>("platform/services/PageAddress", {
  defaultValue: () => null,
});

/** The sentence that names the page of a connector. Empty without a page. */
export const connectorPage = (projectId: string, slug: string) =>
  Effect.map(PageAddress, (address) =>
    address === null ? "" : ` The page is ${address}/#/projects/${projectId}/connectors/${slug}.`,
  );
