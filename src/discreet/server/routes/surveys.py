"""Surveys over HTTP: listed and asked by whoever has a key; their reports are public, and free."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from discreet.curate.surveys import Surveys
from discreet.server import models
from discreet.server.auth import Anyone
from discreet.server.routes.releases import write_cell
from discreet.server.sending import ERRORS, json_response

router = APIRouter(prefix="/v1/datasets/{dataset}/surveys", tags=["surveys"], responses=ERRORS)

Survey = Annotated[str, Path(max_length=63, pattern=r"^[a-z][a-z0-9_]*$", examples=["smoking"])]


def _surveys(access: Any) -> Surveys:
    curator = access.dataset.curator
    return curator.surveys or Surveys(curator, {})


@router.get("", response_model=models.SurveysFound)
async def list_surveys(access: Anyone) -> Response:
    """The surveys whose reports can be asked: each is a public table, and questions are free."""

    def tell() -> Response:
        found = _surveys(access)
        listed = []
        for name in found.names():
            one = found.find(name)
            listed.append(
                {
                    "name": name,
                    "title": one.survey.title,
                    "epsilon": str(one.survey.epsilon),
                    "respondents": len(one.reports),
                    "questions": [asked.name for asked in one.survey.questions],
                }
            )
        return json_response({"surveys": listed})

    return await access.dataset.explain(tell, access.key_id)


@router.post("/{survey}/ask", response_model=models.Told)
async def ask_survey(survey: Survey, ask: models.AskRelease, access: Anyone) -> Response:
    """What the reports of a survey say to a SELECT about it; free, with ranges that hold."""

    def tell() -> Response:
        found = _surveys(access).tell(survey, ask.question, confidence=str(ask.confidence))
        said = found.to_json()
        rows = [[write_cell(part) for part in row] for row in said["rows"]]
        return json_response({**said, "rows": rows})

    return await access.dataset.explain(tell, access.key_id)
