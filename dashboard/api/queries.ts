/**
 * The answers of the API that pages have read (TanStack Query). The frame decides when a page reads again: an event of the project, an
 * action of the reader, a visit, a poll. It calls the page's `load`, which asks these queries. So the library reads only what is
 * missing by itself, and a failure is shown in one place.
 */
import { QueryClient } from "@tanstack/react-query";
import { forgetWithRecent } from "../frame/kept.ts";

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // The page says that the service does not respond. A guess about the network would only hide that.
      networkMode: "always",
      retry: false,
      refetchOnMount: false,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
    },
  },
});

forgetWithRecent(() => queries.removeQueries({ type: "inactive" }));
