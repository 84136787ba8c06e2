"""One file for each page, or for pages that share a form. `ROUTES` lists all addresses."""

from starlette.routing import Route

from app.web import static_files
from app.web.pages import (
    account,
    api_viewer,
    ask,
    budgets,
    datasets,
    grant,
    ledger,
    live,
    people,
    plan,
    problems,
    question,
    register,
    sign_in,
)

ROUTES: list[Route] = [
    Route("/static/{hash}/{name}", static_files.serve, methods=["GET"]),
    *sign_in.ROUTES,
    *budgets.ROUTES,
    *register.ROUTES,
    *grant.ROUTES,
    *account.ROUTES,
    *ask.ROUTES,
    *question.ROUTES,
    *plan.ROUTES,
    *datasets.ROUTES,
    *people.ROUTES,
    *ledger.ROUTES,
    *api_viewer.ROUTES,
    *problems.ROUTES,
    *live.ROUTES,
]
