import { endpointConformance, storeConformance } from "../conformance/store/store.ts";
import { storeOfFile } from "../support/postgres/postgres.ts";

const store = storeOfFile();
storeConformance("Postgres", store);
endpointConformance("Postgres", store);
