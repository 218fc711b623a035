"""Django and Django REST framework in one file: a middleware for all requests, and a throttle of a
view, in one table of all workers.

    pip install django djangorestframework gunicorn tollbar
    gunicorn --workers 8 django_app:app
"""

import os

import django
import tollbar
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path

POLICIES = {"all": "300/day algo fixed-window anchor first", "api": "5/day algo fixed-window anchor first"}
table = tollbar.Table.open(os.environ.get("TABLE", "/dev/shm/django-app"), POLICIES, 100_000)
settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["tollbar.django.rate_limit"],
    TOLLBAR={"table": table, "policy": "all"},
    REST_FRAMEWORK={"UNAUTHENTICATED_USER": None, "DEFAULT_AUTHENTICATION_CLASSES": []},
)
django.setup()

from rest_framework.views import APIView  # noqa: E402
from tollbar.drf import Throttle  # noqa: E402


class ApiThrottle(Throttle):
    table = table
    policy = "api"


class Api(APIView):
    throttle_classes = [ApiThrottle]

    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(b"found")


def home(request: HttpRequest) -> HttpResponse:
    return HttpResponse(b"hello")


urlpatterns = [path("", home), path("api", Api.as_view())]
app = get_wsgi_application()
